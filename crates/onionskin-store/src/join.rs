//! Merge joins: sorted streams that are read side by side.
//!
//! The naive way loads one side into a map. Here both sides come in ascending order of the same
//! key, so that one pass over each is enough, however large they are:
//!
//! ```
//! use onionskin_store::join::SortedCursor;
//!
//! # type Never = std::convert::Infallible;
//! let sites = [(1, "a.org"), (4, "b.org")].into_iter().map(Ok::<_, Never>);
//! let mut sites = SortedCursor::new(sites);
//! let mut found = Vec::new();
//! for doc in [0, 1, 1, 4] {
//!     found.push(sites.at(doc, |row| row.0)?.map(|row| row.1));
//! }
//! assert_eq!(found, [None, Some("a.org"), Some("a.org"), Some("b.org")]);
//! # Ok::<(), Never>(())
//! ```

/// A sorted stream of rows that may fail, read beside others.
///
/// Keys that are asked for must ascend, as the rows do; repeats are allowed on both sides. An error
/// of the stream is returned by the call that reaches it.
#[derive(Debug)]
pub struct SortedCursor<I, T> {
    rows: I,
    next: Option<T>,
    /// The last row that [`last_at`](Self::last_at) has passed.
    passed: Option<T>,
}

impl<T, E, I: Iterator<Item = Result<T, E>>> SortedCursor<I, T> {
    /// At the beginning of a stream. Nothing is read yet.
    pub fn new(rows: impl IntoIterator<IntoIter = I>) -> SortedCursor<I, T> {
        SortedCursor { rows: rows.into_iter(), next: None, passed: None }
    }

    /// The next row, which stays.
    pub fn peek(&mut self) -> Result<Option<&T>, E> {
        if self.next.is_none() {
            self.next = self.rows.next().transpose()?;
        }
        Ok(self.next.as_ref())
    }

    /// Takes the next row.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator gives errors as items, which `?` cannot take"
    )]
    pub fn next(&mut self) -> Result<Option<T>, E> {
        match self.next.take() {
            Some(row) => Ok(Some(row)),
            None => self.rows.next().transpose(),
        }
    }

    /// Takes the next row if it is wanted.
    pub fn next_if(&mut self, is_wanted: impl FnOnce(&T) -> bool) -> Result<Option<T>, E> {
        match self.peek()? {
            Some(row) if is_wanted(row) => Ok(self.next.take()),
            _ => Ok(None),
        }
    }

    /// The first row with a key, which stays. Rows with lower keys are passed over.
    pub fn at<K: Ord>(&mut self, key: K, key_of: impl Fn(&T) -> K) -> Result<Option<T>, E>
    where
        T: Clone,
    {
        while self.next_if(|row| key_of(row) < key)?.is_some() {}
        Ok(self.peek()?.filter(|row| key_of(row) == key).cloned())
    }

    /// The last row with a key. All rows up to it are passed over; the same key may be asked for
    /// again.
    pub fn last_at<K: Ord>(&mut self, key: K, key_of: impl Fn(&T) -> K) -> Result<Option<T>, E>
    where
        T: Clone,
    {
        while let Some(row) = self.next_if(|row| key_of(row) <= key)? {
            self.passed = Some(row);
        }
        Ok(self.passed.as_ref().filter(|row| key_of(row) == key).cloned())
    }

    /// Replaces `group` by all rows with a key. Rows with lower keys are passed over.
    pub fn take_group<K: Ord>(
        &mut self,
        key: K,
        key_of: impl Fn(&T) -> K,
        group: &mut Vec<T>,
    ) -> Result<(), E> {
        group.clear();
        while let Some(row) = self.next_if(|row| key_of(row) <= key)? {
            if key_of(&row) == key {
                group.push(row);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Row = (u8, usize);
    type Rows = std::vec::IntoIter<Result<Row, &'static str>>;

    /// Rows in order, each with a value of its own.
    fn sorted(mut keys: Vec<u8>) -> Vec<Row> {
        keys.sort_unstable();
        keys.into_iter().zip(0..).collect()
    }

    fn cursor(rows: &[Row]) -> SortedCursor<Rows, Row> {
        SortedCursor::new(rows.iter().map(|row| Ok(*row)).collect::<Vec<_>>())
    }

    fn key(row: &Row) -> u8 {
        row.0
    }

    proptest! {
        #[test]
        fn joins_equal_the_naive_join(
            keys in prop::collection::vec(0u8..12, 0..24),
            mut wanted in prop::collection::vec(0u8..12, 0..24),
        ) {
            let rows = sorted(keys);
            wanted.sort_unstable();
            let (mut first, mut last) = (cursor(&rows), cursor(&rows));
            for wanted in &wanted {
                let naive = || rows.iter().filter(|row| row.0 == *wanted).copied();
                prop_assert_eq!(first.at(*wanted, key), Ok(naive().next()));
                prop_assert_eq!(last.last_at(*wanted, key), Ok(naive().last()));
            }
            // Every row is taken once, by the first key that is not below it.
            wanted.dedup();
            let (mut groups, mut below, mut group) = (cursor(&rows), cursor(&rows), vec![(0, 0)]);
            let mut taken = Vec::new();
            for wanted in &wanted {
                groups.take_group(*wanted, key, &mut group).unwrap();
                prop_assert!(group.iter().eq(rows.iter().filter(|row| row.0 == *wanted)));
                while let Some(row) = below.next_if(|row| row.0 <= *wanted).unwrap() {
                    taken.push(row);
                }
                let naive: Vec<Row> = rows.iter().filter(|row| row.0 <= *wanted).copied().collect();
                prop_assert_eq!(&taken, &naive);
            }
            while let Some(row) = below.next().unwrap() {
                prop_assert_eq!(below.peek().unwrap(), rows.get(row.1 + 1));
                taken.push(row);
            }
            prop_assert_eq!(taken, rows);
        }

        #[test]
        fn an_error_is_met_where_it_is(
            keys in prop::collection::vec(0u8..12, 0..24),
            place in 0usize..24,
            wanted in 0u8..12,
        ) {
            let rows = sorted(keys);
            let place = place.min(rows.len());
            let mut items: Vec<Result<Row, &str>> = rows.iter().map(|row| Ok(*row)).collect();
            items.insert(place, Err("broken"));
            let mut cursor = SortedCursor::<Rows, Row>::new(items);
            let found = cursor.at(wanted, key);
            match rows[..place].iter().find(|row| row.0 >= wanted) {
                Some(before) => prop_assert_eq!(found, Ok(Some(*before).filter(|row| row.0 == wanted))),
                None => prop_assert_eq!(found, Err("broken")),
            }
        }
    }
}
