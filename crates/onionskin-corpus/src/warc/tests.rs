use std::io::Write;

use onionskin_warc::Compression;
use onionskin_warc::writer::{NewRecord, RecordId, Revisit, WarcWriter, http_response};
use proptest::prelude::*;

use super::*;
use crate::testing::{Folder, Seen, gzip, read};

const DATE: &str = "2024-05-06T07:08:09Z";
const MICROS: i64 = 1_714_979_289_000_000;
/// SHA-1 of `hello`, in base 32.
const HELLO: &str = "VL2MMHO4YXUKFWV63YHTWSBM3GXKSQ2N";

struct Crawl(WarcWriter<Vec<u8>>, u128);

impl Crawl {
    fn new(compression: Compression) -> Crawl {
        Crawl(WarcWriter::new(Vec::new(), compression).unwrap(), 0)
    }

    fn id(&mut self) -> RecordId {
        self.1 += 1;
        RecordId::from_hash(self.1)
    }

    fn page(&mut self, uri: &str, status: u16, media_type: &str, body: &[u8]) {
        let message = http_response(status, media_type, &[], body).unwrap();
        let id = self.id();
        self.0.response(id, DATE, uri, &message).unwrap();
    }

    fn record(
        &mut self,
        kind: RecordKind,
        uri: &str,
        content_type: &str,
        fields: &[(&str, &str)],
        block: &[u8],
    ) {
        let mut record = NewRecord::new(kind, self.id(), DATE);
        record.target_uri = Some(uri);
        record.content_type = Some(content_type);
        record.fields = fields;
        record.block = block;
        self.0.write(&record).unwrap();
    }

    fn bytes(self) -> Vec<u8> {
        self.0.finish().unwrap()
    }
}

fn read_named(name: &str, bytes: &[u8], options: &Options) -> Seen {
    let folder = Folder::new();
    folder.file(name, bytes);
    read(folder.sources(&[name], options), options)
}

fn html(text: &str) -> String {
    format!("<title>T {text}</title><p>{text}</p><a href='b'>x</a>")
}

fn crawl(compression: Compression) -> Vec<u8> {
    let mut crawl = Crawl::new(compression);
    let id = crawl.id();
    crawl.0.warcinfo(id, DATE, None, &[("software", "test")]).unwrap();
    crawl.page("http://A.org/a/", 200, "text/html; charset=utf-8", html("one").as_bytes());
    crawl.record(
        RecordKind::Request,
        "http://a.org/a/",
        "application/http; msgtype=request",
        &[],
        b"GET / HTTP/1.1\r\n\r\n",
    );
    crawl.page("http://a.org/moved", 301, "text/html", b"moved");
    crawl.page("http://a.org/image", 200, "image/png", b"\x89PNG\r\n\x1a\n");
    crawl.record(RecordKind::Resource, "http://a.org/file.txt", "text/plain", &[], b"two");
    crawl.record(RecordKind::Resource, "urn:pageinfo:http://a.org/", "application/json", &[], b"{}");
    crawl.record(
        RecordKind::Response,
        "dns:a.org",
        "text/dns",
        &[],
        b"20240506\na.org. 300 IN A 127.0.0.1\n",
    );
    crawl.record(RecordKind::Conversion, "http://a.org/a/", "text/plain", &[], b"three");
    let id = crawl.id();
    let visit = Revisit {
        refers_to: None,
        refers_to_uri: "http://a.org/first",
        refers_to_date: DATE,
        payload_digest: &format!("sha1:{HELLO}"),
        http_head: b"",
    };
    crawl.0.revisit(id, DATE, "http://a.org/again", &visit).unwrap();
    crawl.bytes()
}

#[test]
fn records_become_what_they_are() {
    let whole = gzip(&crawl(Compression::None));
    let files = [crawl(Compression::None), crawl(Compression::Gzip), crawl(Compression::Zstd), whole];
    for bytes in files {
        for task_bytes in [1, 100, 8 << 20] {
            let seen = read_named("x.warc", &bytes, &Options { task_bytes, ..Options::default() });
            assert_eq!(seen.bad, []);
            assert_eq!(seen.texts(), ["one\n\nx", "two", "three", ""]);
            let page = &seen.documents[0];
            assert_eq!(page.url.as_deref(), Some("http://a.org/a/"));
            assert_eq!(page.site.as_deref(), Some("a.org"));
            assert_eq!(page.links, ["http://a.org/a/b"]);
            assert_eq!((&*page.title, &*page.media_type), ("T one", "text/html"));
            assert_eq!(page.fetched_at, Some(MICROS));
            assert_eq!(page.bytes, html("one").len() as u64);
            assert!(page.id.as_deref().unwrap().starts_with("urn:uuid:"));
            let again = &seen.documents[3];
            assert!(again.revisit);
            assert_eq!(&*again.media_type, "warc/revisit");
            assert_eq!(again.payload_sha1, parse_sha1(HELLO));
            assert_eq!(again.revisit_of.as_deref(), Some("http://a.org/first"));
            let skipped: Vec<String> = seen.skipped.iter().map(ToString::to_string).collect();
            assert_eq!(
                skipped,
                [
                    "warcinfo record",
                    "request record",
                    "HTTP status 301",
                    "no text in image/png",
                    "crawler's own record",
                    "crawler's own record"
                ]
            );
        }
    }
}

#[test]
fn any_status_on_request() {
    let mut crawl = Crawl::new(Compression::Gzip);
    crawl.page("http://a.org/", 404, "text/plain", b"not here");
    let options = Options { any_status: true, ..Options::default() };
    assert_eq!(read_named("x", &crawl.bytes(), &options).texts(), ["not here"]);
}

#[test]
fn the_digest_is_the_headers_or_computed() {
    use sha1::{Digest, Sha1};
    let digest: [u8; 20] = Sha1::digest(b"hello").into();
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    for spelling in [
        format!("sha1:{HELLO}"),
        format!("SHA1:{}", HELLO.to_lowercase()),
        format!("sha-1:{hex}"),
        HELLO.into(),
    ] {
        assert_eq!(parse_sha1(&spelling), Some(digest), "{spelling}");
    }
    for nonsense in
        ["", "sha1:", "sha256:abc", "sha1:1111", &format!("sha1:{}", "!".repeat(32)), &"\u{e9}".repeat(20)]
    {
        assert_eq!(parse_sha1(nonsense), None, "{nonsense}");
    }
    let mut crawl = Crawl::new(Compression::None);
    let other = format!("sha1:{}", "A".repeat(32));
    crawl.record(
        RecordKind::Resource,
        "http://a/1",
        "text/plain",
        &[("WARC-Payload-Digest", &other)],
        b"hello",
    );
    crawl.record(
        RecordKind::Resource,
        "http://a/2",
        "text/plain",
        &[("WARC-Payload-Digest", "md5:x")],
        b"hello",
    );
    crawl.record(RecordKind::Resource, "http://a/3", "text/plain", &[], b"hello");
    let seen = read_named("x.warc", &crawl.bytes(), &Options::default());
    let digests: Vec<_> = seen.documents.iter().map(|document| document.payload_sha1.unwrap()).collect();
    assert_eq!(digests, [[0; 20], digest, digest]);
}

#[test]
fn damage_is_told_and_the_rest_read() {
    let mut crawl = Crawl::new(Compression::Gzip);
    let mut ends = Vec::new();
    for i in 0_u32..20 {
        crawl.page(
            "http://a.org/",
            200,
            "text/plain",
            format!("text {i} {:x}", i.wrapping_mul(2_654_435_761)).as_bytes(),
        );
        ends.push(usize::try_from(crawl.0.offset()).unwrap());
    }
    let mut bytes = crawl.bytes();
    bytes[ends[4] + 12..ends[4] + 60].fill(0);
    bytes.truncate(ends[19] - 10);
    for task_bytes in [1, 64, 8 << 20] {
        let seen = read_named("x.warc.gz", &bytes, &Options { task_bytes, ..Options::default() });
        let kept: Vec<u32> =
            seen.texts().iter().filter_map(|text| text.split(' ').nth(1)?.parse().ok()).collect();
        assert!((0..4).chain(6..18).all(|i| kept.contains(&i)), "{kept:?}");
        assert!(seen.bad.iter().any(|bad| bad.offset == ends[4] as u64), "{:?}", seen.bad);
        assert!(seen.bad.iter().any(|bad| bad.offset == ends[18] as u64), "{:?}", seen.bad);
    }
}

#[test]
fn bombs_and_large_records_are_told() {
    let mut crawl = Crawl::new(Compression::Gzip);
    let bomb = gzip(&vec![b'x'; 20 << 20]);
    let message = http_response(200, "text/plain", &[("Content-Encoding", "gzip")], &bomb).unwrap();
    let id = crawl.id();
    crawl.0.response(id, DATE, "http://a.org/bomb", &message).unwrap();
    crawl.page("http://a.org/large", 200, "text/plain", &vec![b'x'; 3 << 20]);
    crawl.page("http://a.org/", 200, "text/plain", b"small");
    let message = http_response(200, "text/plain", &[("Content-Encoding", "rot13")], b"grkg").unwrap();
    let id = crawl.id();
    crawl.0.response(id, DATE, "http://a.org/rot13", &message).unwrap();
    crawl.record(RecordKind::Response, "http://a.org/", "application/http", &[], b"no status line");
    let seen =
        read_named("x.warc.gz", &crawl.bytes(), &Options { max_record_bytes: 1 << 20, ..Options::default() });
    assert_eq!(seen.texts(), ["small"]);
    let codes: Vec<_> = seen.bad.iter().map(|bad| bad.reason.code()).collect();
    assert_eq!(codes, ["too_large", "too_large", "broken_http", "broken_http"]);
}

#[test]
fn canonical_from_the_http_head() {
    let find = |header| canonical_link(header, Some("http://a.org/x/y"));
    assert_eq!(find("<../z>; rel=\"canonical\"").as_deref(), Some("http://a.org/z"));
    assert_eq!(find("<http://b.org>; title=x; REL=canonical").as_deref(), Some("http://b.org/"));
    assert_eq!(find("<style.css>; rel=preload"), None);
    assert_eq!(find("<a.css>; rel=preload, <b>; rel=canonical"), None);
    assert_eq!(find("nonsense"), None);
}

fn zip(entries: &[(&str, &[u8])], method: zip::CompressionMethod) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(method);
    for (name, bytes) in entries {
        zip.start_file(*name, options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

#[test]
fn each_file_of_a_wacz_is_a_source() {
    let page = |text: &str| {
        let mut crawl = Crawl::new(Compression::Gzip);
        crawl.page("http://a.org/", 200, "text/plain", text.as_bytes());
        crawl.page("http://a.org/", 200, "text/plain", text.to_uppercase().as_bytes());
        crawl.bytes()
    };
    let (one, two) = (page("one"), page("two"));
    let entries: [(&str, &[u8]); 3] =
        [("datapackage.json", b"{}"), ("archive/b.warc.gz", &two), ("archive/a.warc.gz", &one)];
    for method in [zip::CompressionMethod::Stored, zip::CompressionMethod::Deflated] {
        let folder = Folder::new();
        folder.file("x.wacz", zip(&entries, method));
        for task_bytes in [10, 8 << 20] {
            let options = Options { task_bytes, ..Options::default() };
            let sources = folder.sources(&["x.wacz"], &options);
            assert_eq!(sources.len(), 2);
            assert!(sources[0].name.ends_with("x.wacz/archive/a.warc.gz"));
            let seen = read(sources, &options);
            assert_eq!((seen.texts(), seen.bad_codes()), (vec!["one", "ONE", "two", "TWO"], vec![]));
        }
        let whole = zip(&entries, method);
        let seen = read_named("x.wacz", &whole[..whole.len() - 30], &Options::default());
        assert_eq!((seen.texts(), seen.bad_codes()), (vec![], vec![(0, "broken_warc")]));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_task_size_reads_the_same(texts in prop::collection::vec("[a-f]{1,300}", 1..20), task_bytes in 1_u64..400) {
        for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
            let mut crawl = Crawl::new(compression);
            for text in &texts {
                crawl.page("http://a.org/", 200, "text/plain", text.as_bytes());
            }
            let seen = read_named("x", &crawl.bytes(), &Options { task_bytes, ..Options::default() });
            prop_assert_eq!(seen.texts(), texts.iter().map(String::as_str).collect::<Vec<_>>());
            prop_assert_eq!(seen.bad, vec![]);
        }
    }
}
