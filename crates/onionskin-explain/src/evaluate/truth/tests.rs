use super::*;

fn read(text: &str) -> Result<Vec<String>, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("truth");
    std::fs::write(&path, text).unwrap();
    let mut seen = Vec::new();
    let result = TruthFile::new(&path).read(&mut |statement| {
        let name = |name: &Name<'_>| match name {
            Name::Any(text) => text.to_string(),
            Name::Url(text) => format!("url:{text}"),
            Name::Id(text) => format!("id:{text}"),
            Name::Doc(doc) => format!("doc:{doc}"),
        };
        seen.push(match &statement {
            Statement::Pair { a, b, resemblance, exact, .. } => {
                format!("{} {} {resemblance:?}{}", name(a), name(b), if *exact { " exact" } else { "" })
            }
            Statement::Member { name: of, .. } => name(of),
            Statement::Cluster { listed, .. } => format!("{listed:?}"),
            Statement::Shingle(words) => format!("w{words}"),
        });
        Ok(())
    });
    result.map(|()| seen).map_err(|error| error.to_string())
}

#[test]
fn the_same_in_every_format() {
    let pairs = ["x y Some(0.5)", "http://a.org/,1 z None"];
    let json = "{\"a\":\"x\",\"b\":\"y\",\"resemblance\":0.5}\n\n{\"a\":\"http://a.org/,1\",\"b\":\"z\",\"more\":[]}\n";
    assert_eq!(read(json).unwrap(), pairs);
    assert_eq!(read("a,b,resemblance\nx,y,0.5\n\"http://a.org/,1\",z,\n").unwrap(), pairs);
    assert_eq!(read("\u{feff}B\tA\tresemblance\ny\tx\t0.5\nz\thttp://a.org/,1\t").unwrap(), pairs);
    assert_eq!(read("{\"a\":3,\"b\":4}").unwrap(), ["doc:3 doc:4 None"]);
    let members = ["id:x", "id:y"];
    assert_eq!(read("{\"id\":\"x\",\"cluster\":1}\n{\"id\":\"y\",\"cluster\":\"one\"}").unwrap(), members);
    assert_eq!(read("id,cluster\nx,1\ny,one\n").unwrap(), members);
    assert_eq!(read("{\"url\":\"u\",\"cluster\":1}\n{\"doc\":5,\"cluster\":1}").unwrap(), ["url:u", "doc:5"]);
    assert_eq!(read("").unwrap(), Vec::<String>::new());
}

#[test]
fn facts_of_generated_webs_are_understood() {
    use onionskin_testkit::{Fact, Preset, TruthOptions, Web, WebSpec};
    let web = Web::new(&WebSpec::of(Preset::Demo, 400, 3)).unwrap();
    let mut bytes = Vec::new();
    web.write_truth(&mut bytes, TruthOptions::default(), &mut |_, _| {}).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let wanted: Vec<String> = text
        .lines()
        .filter_map(|line| match serde_json::from_str::<Fact>(line).unwrap() {
            Fact::Copy { a, b, kind, resemblance, .. } => {
                let exact = if kind == onionskin_testkit::CopyKind::Exact { " exact" } else { "" };
                Some(format!("{a} {b} {:?}{exact}", Some(resemblance)))
            }
            Fact::Cluster { pairs: onionskin_testkit::Pairs::Centre, .. } => Some("Centre".to_owned()),
            Fact::Cluster { .. } => Some("Complete".to_owned()),
            Fact::Summary(summary) => Some(format!("w{}", summary.shingle)),
            _ => None,
        })
        .collect();
    assert!(wanted.len() > 50);
    assert_eq!(read(&text).unwrap(), wanted);
}

#[test]
fn mistakes_are_told_with_their_line() {
    let error = |text: &str| read(text).unwrap_err();
    assert!(error("{\"a\":\"x\",\"b\":\"y\"}\n{\"a\":").contains("line 2"), "{}", error("{\"a\":"));
    assert!(error("{\"a\":\"x\"}").contains("neither a pair"));
    assert!(error("{\"a\":\"x\",\"b\":\"y\",\"resemblance\":1.5}").contains("not from 0 to 1"));
    assert!(error("{\"cluster\":7}").contains("without id, url or doc"));
    assert!(error("{\"type\":\"cluster\",\"cluster\":1,\"pairs\":\"some\"}").contains("some"));
    assert!(error("x,y\n1,2\n").contains("the header must have"));
    assert!(error("a,b,resemblance\nx,y,much\n").contains("line 2"));
    assert!(error("a,b\nx,\n").contains("empty"));
    assert!(error("doc,cluster\nx,1\n").contains("not a document number"));
    assert!(error("\u{1f}\u{fffd}").contains("header"));
}
