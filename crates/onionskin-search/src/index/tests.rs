use std::fs;

use onionskin_extract::url::site;
use onionskin_scan::texts::read_texts;
use onionskin_store::Quiet;
use onionskin_testkit::Preset;
use tantivy::IndexWriter;
use tantivy::indexer::NoMergePolicy;

use super::build::{MOST_SEGMENTS, document, join_neighbours};
use super::*;
use crate::testing::{index_file, indexed};
use crate::{Copies, SearchParams};

#[test]
fn documents_keep_their_numbers() {
    let of = indexed(Preset::Demo, 500, 1);
    assert_eq!(of.built.lost, []);
    assert_eq!((of.built.documents, of.built.without_text), (u64::from(of.index.documents()), 0));
    let mut documents = of.atlas.documents().unwrap();
    while let Some(batch) = documents.next_batch().unwrap() {
        for row in batch.rows() {
            let page = of.index.page(row.doc).unwrap().unwrap();
            assert_eq!((page.doc, page.url.as_deref(), page.title.as_deref()), (row.doc, row.url, row.title));
            if let Some(url) = row.url {
                assert!(of.index.documents_at(url).unwrap().contains(&row.doc));
                let spelled = url.replacen("http://", "HTTP://", 1);
                assert!(of.index.documents_at(&spelled).unwrap().contains(&row.doc));
            }
        }
    }
    assert_eq!(of.index.page(DocId(of.index.documents())).unwrap(), None);
    assert!(of.index.documents_at("http://nowhere/").unwrap().is_empty());
}

/// Many segments that are joined give the documents and the results of one.
#[test]
fn joined_segments_stay_in_order() {
    let of = indexed(Preset::Demo, 700, 2);
    let folder = of.path("small");
    let (schema, fields) = schema();
    fs::create_dir(&folder).unwrap();
    let index = tantivy::Index::create_in_dir(&folder, schema).unwrap();
    index.tokenizers().register(WORDS, WordTokenizer);
    let mut writer: IndexWriter = index.writer_with_num_threads(1, 32 << 20).unwrap();
    writer.set_merge_policy(Box::new(NoMergePolicy));
    read_texts(&of.atlas, &TextsParams::default(), |row, text| {
        writer.add_document(document(&fields, row, text))?;
        if row.doc.get() % 30 == 29 {
            writer.commit()?;
        }
        Ok::<(), TantivyError>(())
    })
    .unwrap();
    writer.commit().unwrap();
    let before = index.reader().unwrap().searcher().segment_readers().len();
    assert!(before > MOST_SEGMENTS, "{before}");
    join_neighbours(&index, &mut writer).unwrap();
    writer.wait_merging_threads().unwrap();
    fs::copy(of.index.folder().join("sketches"), folder.join("sketches")).unwrap();
    describe(&of.atlas, &folder, of.index.without_text()).unwrap();
    let joined = Index::open(&of.atlas, Some(&folder)).unwrap();
    assert!(joined.segments.len() <= MOST_SEGMENTS && joined.segments.len() > 1, "{:?}", joined.segments);
    for doc in DocId::range(0..joined.documents()) {
        assert_eq!(joined.page(doc).unwrap(), of.index.page(doc).unwrap());
    }
    for word in ["the", "a", "of", "page"] {
        let query = word.parse().unwrap();
        let results = |index: &Index| index.search(&of.copies, &query, &SearchParams::default()).unwrap();
        assert_eq!(results(&joined), results(&of.index));
    }
}

#[test]
fn an_index_of_other_documents_is_told() {
    let of = indexed(Preset::Demo, 200, 4);
    let other = indexed(Preset::Demo, 220, 4);
    let stale = Index::open(&other.atlas, Some(of.index.folder()));
    assert!(matches!(stale, Err(SearchError::Stale { .. })), "{stale:?}");
    let nothing = Index::open(&of.atlas, Some(&of.path("nothing")));
    assert!(matches!(nothing, Err(SearchError::Stale { .. })), "{nothing:?}");
    // Damage is found and mended by making it again.
    fs::write(of.index.folder().join("meta.json"), "{}").unwrap();
    assert!(Index::open(&of.atlas, None).is_err());
    let (index, built) = Index::open_or_build(&of.atlas, &BuildParams::default(), &Quiet).unwrap();
    assert!(built.is_some() && index.documents() == of.index.documents());
    assert!(Index::open_or_build(&of.atlas, &BuildParams::default(), &Quiet).unwrap().1.is_none());
}

/// The engine reads a file in places and compares nothing: a flipped bit gave other results.
#[test]
fn a_flipped_bit_in_any_file_is_found() {
    let of = indexed(Preset::Demo, 200, 4);
    let folder = of.index.folder().to_owned();
    let mut files = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let sound = fs::read(&path).unwrap();
        if path.extension().is_some_and(|ending| ending == "lock") || sound.is_empty() {
            continue;
        }
        files += 1;
        for at in [0, sound.len() / 3, sound.len() - 2] {
            let mut bytes = sound.clone();
            bytes[at] ^= 4;
            fs::write(&path, &bytes).unwrap();
            let found = Index::open(&of.atlas, None);
            assert!(matches!(found, Err(SearchError::Stale { .. })), "{} at {at}: {found:?}", path.display());
        }
        fs::write(&path, &sound).unwrap();
    }
    assert!(files > 8, "{files}");
    assert!(Index::open(&of.atlas, None).is_ok());
}

#[test]
fn without_inputs_titles_and_addresses_are_left() {
    let of = indexed(Preset::Demo, 200, 4);
    fs::remove_file(of.path("web.warc")).unwrap();
    let built = Index::build(&of.atlas, &BuildParams::default(), &Quiet).unwrap();
    assert_eq!(built.lost.len(), 1);
    assert!(built.without_text > 150, "{built:?}");
    let index = Index::open(&of.atlas, None).unwrap();
    assert_eq!(index.without_text(), built.without_text);
    let page = index.page(DocId(0)).unwrap().unwrap();
    assert_eq!(page.text, None);
    let host = site(page.url.as_deref().unwrap()).unwrap();
    let results =
        index.search(&of.copies, &format!("site:{host}").parse().unwrap(), &SearchParams::default()).unwrap();
    assert!(!results.hits.is_empty());
    let too_little = Copies::read(&of.atlas, MemoryBudget::from_bytes(100));
    assert!(matches!(too_little, Err(SearchError::Memory { .. })));
}

#[test]
fn a_folder_of_something_else_is_left_alone() {
    let of = indexed(Preset::Demo, 200, 4);
    let folder = of.path("letters");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("dear"), "mother").unwrap();
    let params = BuildParams { folder: Some(folder.clone()), ..BuildParams::default() };
    let refused = Index::open_or_build(&of.atlas, &params, &Quiet);
    assert!(matches!(refused, Err(SearchError::Stale { .. })), "{refused:?}");
    assert_eq!(fs::read_to_string(folder.join("dear")).unwrap(), "mother");
    fs::remove_file(folder.join("dear")).unwrap();
    assert!(Index::open_or_build(&of.atlas, &params, &Quiet).unwrap().1.is_some());
}

/// It takes minutes to find out by running out of it.
#[test]
fn a_budget_that_is_too_small_is_refused_before_anything_is_read() {
    let of = indexed(Preset::Demo, 200, 4);
    let folder = of.path("other");
    let memory = MemoryBudget::from_mib(32);
    let params = BuildParams { memory, folder: Some(folder.clone()), ..BuildParams::default() };
    let refused = Index::build(&of.atlas, &params, &Quiet);
    assert!(
        matches!(refused, Err(SearchError::Memory { needed, .. }) if needed > memory.bytes()),
        "{refused:?}"
    );
    assert!(!folder.exists());
    let params = BuildParams { memory: BuildParams::LEAST_MEMORY, ..params };
    assert!(Index::build(&of.atlas, &params, &Quiet).is_ok());
}

/// The table of clusters is known by its rows before it is read.
#[test]
fn what_copies_take_is_known_before() {
    let of = indexed(Preset::Demo, 200, 4);
    let needed = Copies::bytes(&of.atlas);
    assert!(needed > 200 * 12, "{needed}");
    assert!(Copies::read(&of.atlas, MemoryBudget::from_bytes(needed)).is_ok());
    let less = Copies::read(&of.atlas, MemoryBudget::from_bytes(needed - 1));
    assert!(matches!(less, Err(SearchError::Memory { needed: told, .. }) if told == needed), "{less:?}");
}

#[test]
fn a_place_that_cannot_be_written_is_told() {
    let of = indexed(Preset::Demo, 200, 4);
    let file = of.path("file");
    fs::write(&file, "").unwrap();
    let params = BuildParams { folder: Some(file.join("search")), ..BuildParams::default() };
    let refused = Index::build(&of.atlas, &params, &Quiet);
    assert!(matches!(refused, Err(SearchError::NotWritten { .. })), "{refused:?}");
}

#[test]
fn the_end_of_a_very_long_text_is_not_searched() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.jsonl");
    let filler = "some words ".repeat(INDEXED_TEXT / 11 + 1);
    fs::write(&input, format!("{{\"text\":\"beginning {filler} ending\"}}\n")).unwrap();
    let of = index_file(folder, input);
    let found = |word: &str| {
        of.index.search(&of.copies, &word.parse().unwrap(), &SearchParams::default()).unwrap().hits.len()
    };
    assert_eq!((found("beginning"), found("some"), found("ending")), (1, 1, 0));
}
