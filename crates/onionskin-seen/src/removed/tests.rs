#![allow(clippy::unwrap_used, reason = "tests")]
use super::*;
use crate::testing::fast_dir;
use onionskin_store::testing::Faulty;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_removed_read_back(heirs in prop::collection::btree_map(0u32..2000, 5000u32..9000, 0..1200)) {
        let dir = fast_dir();
        let mut removed = Removed::default();
        heirs.iter().for_each(|(doc, heir)| removed.set(*doc, *heir));
        removed.write(Faulty::never().as_ref(), dir.path(), 3).unwrap();
        let read = Removed::read(dir.path(), 3, removed.len()).unwrap();
        prop_assert_eq!(read.iter().collect::<Vec<_>>(), heirs.into_iter().collect::<Vec<_>>());
        prop_assert!(Removed::read(dir.path(), 3, removed.len() + 1).is_err());
    }

    #[test]
    fn any_content_is_read_or_an_error(content in prop::collection::vec(any::<u8>(), 0..200)) {
        let dir = fast_dir();
        prop_assert_eq!(parse_content(dir.path(), &content).is_ok(), content.len() % 8 == 0);
    }
}
