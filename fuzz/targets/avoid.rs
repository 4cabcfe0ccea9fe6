//! An avoid list from a file, its rules tried on an address, and every format that it is written
//! in.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    use onionskin_mirror::avoid::{AvoidList, Format, Matcher};
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(list) = AvoidList::from_json(text) else { return };
    let again = AvoidList::from_json(&list.to_json().expect("a list that was read can be written"));
    assert_eq!(again.expect("a list that was written can be read"), list);
    let matcher = Matcher::new(&list);
    for entry in &list.entries {
        matcher.skips(&entry.root);
        matcher.all(&entry.principal);
    }
    for format in Format::ALL {
        let _ = format.render(&list);
    }
});
