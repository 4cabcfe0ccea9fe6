//! `--help` of every command.

use std::collections::BTreeMap;

use crate::util::Dir;

use super::file;

/// A command, by the words that call it, and its help.
pub struct Command {
    pub words: Vec<String>,
    pub help: String,
}

impl Command {
    /// `seen add`; nothing for the program itself.
    pub fn name(&self) -> String {
        self.words.join(" ")
    }

    /// Whether it does nothing by itself: it only has commands below it.
    pub fn is_group(&self) -> bool {
        let usage = self.help.split("Usage: ").nth(1).unwrap();
        let lines = usage.lines().take_while(|line| !line.is_empty());
        lines.into_iter().all(|line| line.ends_with("<COMMAND>"))
    }
}

/// Every command that help lists, the program itself first. Walking the help finds commands that no
/// list here knows.
pub fn commands(dir: &Dir) -> Vec<Command> {
    let mut found = Vec::new();
    let mut left = vec![Vec::new()];
    while let Some(words) = left.pop() {
        let mut arguments: Vec<&str> = words.iter().map(String::as_str).collect();
        arguments.push("--help");
        let output = dir.onionskin(&arguments).env("COLUMNS", "100").output().unwrap();
        assert!(output.status.success(), "{words:?}");
        let help = String::from_utf8(output.stdout).unwrap();
        for name in subcommands(&help) {
            left.push([words.as_slice(), &[name.to_owned()]].concat());
        }
        found.push(Command { words, help });
    }
    found
}

/// The names under `Commands:`. Their descriptions go on further to the right.
fn subcommands(help: &str) -> impl Iterator<Item = &str> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = lines.take_while(|line| !line.is_empty()).filter_map(|line| {
        let line = line.strip_prefix("  ").filter(|line| !line.starts_with(' '))?;
        line.split(' ').next()
    });
    names.filter(|name| *name != "help")
}

#[test]
fn help() {
    let dir = Dir::new();
    let texts: BTreeMap<String, String> = commands(&dir)
        .into_iter()
        .map(|command| {
            let name = [&["onionskin".to_owned()], command.words.as_slice()].concat().join("-");
            (format!("{name}.txt"), command.help)
        })
        .collect();
    assert!(texts.len() > 20, "{:?}", texts.keys());
    file::check("help", &texts);
}
