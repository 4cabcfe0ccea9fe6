use super::*;

const LIMITS: ToolLimits =
    ToolLimits { time: Duration::from_secs(20), output_bytes: 1 << 20, memory_bytes: 4 << 30 };

/// A PDF of these objects, numbered from 1, the first being the catalogue.
fn pdf(objects: &[String]) -> Vec<u8> {
    let mut out = b"%PDF-1.4\n".to_vec();
    let mut offsets = Vec::new();
    for (n, object) in objects.iter().enumerate() {
        offsets.push(out.len());
        out.extend_from_slice(format!("{} 0 obj\n{object}\nendobj\n", n + 1).as_bytes());
    }
    let xref = out.len();
    out.extend_from_slice(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).as_bytes());
    for offset in offsets {
        out.extend_from_slice(format!("{offset:010} 00000 n \n").as_bytes());
    }
    let size = objects.len() + 1;
    out.extend_from_slice(
        format!("trailer\n<</Size {size}/Root 1 0 R>>\nstartxref\n{xref}\n%%EOF\n").as_bytes(),
    );
    out
}

fn stream(dictionary: &str, content: &str) -> String {
    format!("<<{dictionary}/Length {}>>\nstream\n{content}\nendstream", content.len())
}

/// One page with this content; object 5 is a form.
fn one_page(content: &str, form: String, page_parent: &str) -> Vec<u8> {
    pdf(&[
        "<</Type/Catalog/Pages 2 0 R>>".to_owned(),
        format!("<</Type/Pages/Kids[3 0 R]/Count 1{page_parent}>>"),
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 300]/Contents 4 0 R\
         /Resources<</Font<</F 6 0 R>>/XObject<</X 5 0 R>>>>>>"
            .to_owned(),
        stream("", content),
        form,
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>".to_owned(),
    ])
}

const HELLO: &str = "BT /F 12 Tf 20 100 Td (Hello world) Tj ET";

fn form(resources: &str, content: &str) -> String {
    stream(&format!("/Type/XObject/Subtype/Form/BBox[0 0 9 9]{resources}"), content)
}

#[test]
fn text_is_read() {
    let bytes = one_page(HELLO, form("", ""), "");
    assert_eq!(built_in(bytes.clone(), LIMITS).unwrap().trim(), "Hello world");
    let mut answer = Vec::new();
    pdf_worker(&bytes[..], &mut answer).unwrap();
    assert!(answer.starts_with(b"T") && answer.ends_with(b"Hello world"), "{answer:?}");
}

#[test]
fn forms_that_draw_themselves_are_refused() {
    let through_itself = form("/Resources<</XObject<</X 5 0 R>>>>", "/X Do");
    let through_its_caller = form("", "/X Do");
    for form in [through_itself, through_its_caller] {
        let result = built_in(one_page("/X Do", form, ""), LIMITS);
        assert!(matches!(result, Err(ExtractError::Failed { .. })), "{result:?}");
    }
}

#[test]
fn pages_that_are_their_own_parents_are_refused() {
    let result = built_in(one_page(HELLO, form("", ""), "/Parent 2 0 R"), LIMITS);
    assert!(matches!(result, Err(ExtractError::Failed { .. })), "{result:?}");
}

#[test]
fn limits_hold() {
    let bytes = one_page(&HELLO.repeat(200), form("", ""), "");
    let result = built_in(bytes.clone(), ToolLimits { output_bytes: 100, ..LIMITS });
    assert!(matches!(result, Err(ExtractError::TooLarge { limit: 100 })), "{result:?}");
    let result = built_in(bytes, ToolLimits { time: Duration::ZERO, ..LIMITS });
    assert!(matches!(result, Err(ExtractError::TimedOut { .. })), "{result:?}");
}

#[test]
fn damaged_files_fail_and_nothing_else() {
    let bytes = one_page(HELLO, form("", ""), "");
    assert!(built_in(b"%PDF-1.4 and no more".to_vec(), LIMITS).is_err());
    // A content that makes the reader panic.
    assert!(built_in(one_page("BT /None 12 Tf (a) Tj ET", form("", ""), ""), LIMITS).is_err());
    for cut in (0..bytes.len()).step_by(61) {
        let _ = built_in(bytes[..cut].to_vec(), LIMITS);
    }
    for nested in ["[", "<</A", "("] {
        let _ = built_in(one_page(&nested.repeat(100_000), form("", ""), ""), LIMITS);
    }
}

#[test]
fn a_worker_answers_for_the_reader() {
    let worker = |script: &str| vec!["sh".to_owned(), "-c".to_owned(), script.to_owned()];
    assert_eq!(by_worker(&worker("printf Tabc"), b"", LIMITS).unwrap(), b"abc");
    let result = by_worker(&worker("printf Eoops"), b"", LIMITS);
    assert!(matches!(&result, Err(ExtractError::Failed { reason, .. }) if reason == "oops"), "{result:?}");
    assert!(by_worker(&worker("true"), b"", LIMITS).is_err());
    assert!(by_worker(&worker("kill -9 $$"), b"", LIMITS).is_err());
    assert!(by_worker(&[], b"", LIMITS).is_err());
}
