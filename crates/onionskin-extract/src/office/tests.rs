use super::*;
use std::io::Write;
use zip::write::SimpleFileOptions;

fn archive(members: &[(&str, &str)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in members {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(content.as_bytes()).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[track_caller]
fn check(members: &[(&str, &str)], expected_kind: MediaType, title: &str, text: &str) {
    let bytes = archive(members);
    assert_eq!(kind(&bytes), Some(expected_kind));
    let mut page = Page::default();
    extract(expected_kind, &bytes, 1 << 20, &mut page).unwrap();
    assert_eq!((page.title.as_str(), page.text.as_str()), (title, text));
}

#[test]
fn word() {
    check(
        &[
            (
                "word/document.xml",
                "<w:document><w:body><w:p><w:r><w:t>One &amp; t</w:t></w:r><w:r><w:t xml:space='preserve'>wo </w:t>\
                 <w:tab/><w:t>tab</w:t></w:r></w:p><w:p><w:del><w:delText>gone</w:delText></w:del><w:instrText>no</w:instrText>\
                 <w:t>three</w:t><w:br/><w:t>f&#xF6;ur</w:t></w:p><w:tbl><w:tr><w:tc><w:p><w:t>a</w:t></w:p></w:tc>\
                 <w:tc><w:p><w:t>b</w:t></w:p></w:tc></w:tr></w:tbl></w:body></w:document>",
            ),
            ("word/footnotes.xml", "<w:p><w:t>note</w:t></w:p>"),
            ("docProps/core.xml", "<cp:coreProperties><dc:title>A title</dc:title></cp:coreProperties>"),
        ],
        MediaType::Docx,
        "A title",
        "One & two\ttab\nthree\nföur\na\tb\n\nnote",
    );
}

#[test]
fn slides_in_the_order_of_their_numbers() {
    check(
        &[
            ("ppt/presentation.xml", "<p/>"),
            ("ppt/slides/slide10.xml", "<p:sld><a:p><a:t>ten</a:t></a:p></p:sld>"),
            ("ppt/slides/slide2.xml", "<p:sld><a:p><a:t>two</a:t></a:p><a:p><a:t>b</a:t></a:p></p:sld>"),
        ],
        MediaType::Pptx,
        "",
        "two\nb\n\nten",
    );
}

#[test]
fn cells_of_a_workbook() {
    check(
        &[
            ("xl/workbook.xml", "<w/>"),
            (
                "xl/sharedStrings.xml",
                "<sst><si><t>x</t><rPh><t>no</t></rPh></si><si><r><t>y</t></r><r><t>z</t></r></si></sst>",
            ),
            (
                "xl/worksheets/sheet1.xml",
                "<sheetData><row><c t=\"s\"><v>1</v></c><c><v>42</v></c></row><row><c t=\"s\"><v>0</v></c>\
                 <c t=\"inlineStr\"><is><t>in</t></is></c><c t=\"s\"><v>99</v></c></row></sheetData>",
            ),
        ],
        MediaType::Xlsx,
        "",
        "yz\t42\nx\tin",
    );
}

#[test]
fn open_document() {
    check(
        &[
            ("mimetype", "application/vnd.oasis.opendocument.text"),
            (
                "content.xml",
                "<office:body><text:tracked-changes><text:p>no</text:p></text:tracked-changes><text:h>Head</text:h>\
                 <text:p>a<text:s/>b<text:line-break/>c</text:p>outside<table:table><table:table-row><table:table-cell>\
                 <text:p>1</text:p></table:table-cell><table:table-cell><text:p>2</text:p></table:table-cell>\
                 </table:table-row></table:table></office:body>",
            ),
            ("meta.xml", "<office:meta><dc:title>T</dc:title></office:meta>"),
        ],
        MediaType::Odt,
        "T",
        "Head\na b\nc\n\n1\t2",
    );
}

#[test]
fn a_plain_zip_is_no_document() {
    assert_eq!(kind(&archive(&[("a.txt", "a")])), None);
    assert_eq!(kind(&archive(&[("mimetype", "application/epub+zip"), ("content.xml", "")])), None);
    assert_eq!(kind(b"PK\x03\x04"), None);
}

#[test]
fn declarations_bombs_and_damage_are_errors() {
    let mut page = Page::default();
    let dtd = archive(&[("word/document.xml", "<!DOCTYPE a [<!ENTITY b 'c'>]><w:t>&b;</w:t>")]);
    assert!(matches!(extract(MediaType::Docx, &dtd, 1 << 20, &mut page), Err(ExtractError::Failed { .. })));
    let bomb = archive(&[("word/document.xml", &" ".repeat(MAX_MEMBER_BYTES as usize + 1))]);
    assert!(bomb.len() < 1 << 20);
    assert!(matches!(
        extract(MediaType::Docx, &bomb, 1 << 20, &mut page),
        Err(ExtractError::TooLarge { .. })
    ));
    let sheet = format!("<row>{}</row>", "<c t=\"s\"><v>0</v></c>".repeat(10_000));
    let strings = format!("<si><t>{}</t></si>", "x".repeat(10_000));
    let cells = archive(&[
        ("xl/workbook.xml", ""),
        ("xl/sharedStrings.xml", &strings),
        ("xl/worksheets/sheet1.xml", &sheet),
    ]);
    assert!(matches!(
        extract(MediaType::Xlsx, &cells, 1 << 20, &mut page),
        Err(ExtractError::TooLarge { .. })
    ));
    let whole = archive(&[("word/document.xml", "<w:p><w:t>text</w:t></w:p>")]);
    for cut in 0..whole.len() {
        let _ = extract(MediaType::Docx, &whole[..cut], 1 << 20, &mut page);
        let _ = kind(&whole[..cut]);
    }
    let nested = archive(&[("word/document.xml", &"<w:p>".repeat(100_000))]);
    let _ = extract(MediaType::Docx, &nested, 1 << 20, &mut page);
}
