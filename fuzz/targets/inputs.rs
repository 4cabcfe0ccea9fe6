//! Any file as an input: what it is, is seen by its content.
#![no_main]

// Decoders panic on damaged files, and our readers catch that. libFuzzer's hook would end the
// process before they can; without it a panic that nobody catches still does.
libfuzzer_sys::fuzz_target!(init: std::panic::set_hook(Box::new(|_| {})), |data: &[u8]| {
    use onionskin_corpus::{
        BadRecord, Document, InputFailure, Options, Scratch, SkipReason, Tasks, Visitor, discover,
    };
    use std::sync::Arc;
    struct Count(u64);
    impl Visitor for Count {
        fn document(&mut self, document: Document<'_>) {
            self.0 += document.text.len() as u64;
        }
        fn bad_record(&mut self, _: BadRecord) {}
        fn skipped(&mut self, _: SkipReason) {}
        fn failed(&mut self, failure: InputFailure) {
            // The file is there, whole: whatever is in it is no failure of the machine.
            panic!("{failure:?}");
        }
    }
    let Some((kind, data)) = data.split_first() else { return };
    let folder = tempfile::tempdir().expect("a folder for the input");
    let path = folder.path().join("input");
    std::fs::write(&path, data).expect("the input is written");
    let formats = onionskin_corpus::Format::ALL;
    let format = formats.get(usize::from(*kind)).copied();
    let options =
        Arc::new(Options { format, task_bytes: 1 << 10, max_record_bytes: 1 << 16, ..Options::default() });
    let Ok(sources) = discover(&[path.display().to_string()], &options) else { return };
    let mut tasks = Tasks::new(sources.into(), Arc::clone(&options));
    let (mut scratch, mut count) = (Scratch::new(&options), Count(0));
    while let Some(task) = tasks.next_task() {
        task.run(&mut scratch, &mut count);
    }
});
