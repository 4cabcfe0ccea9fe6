//! Files of a folder, and nothing outside of it.
//!
//! An atlas comes from elsewhere now and then, and a symbolic link in it can name any file of this
//! machine. The naive way, to ask where a path leads and then to open it, can be outrun. Here every
//! part of the path is opened in its turn and must not be a link, so that what is opened is what
//! was looked at.

use std::fs::File;
use std::io;
use std::path::{Component, Path};

use rustix::fs::{Mode, OFlags, open, openat};

/// Opens a file by its path below a folder, which itself may be a link. An error where a part of
/// the path is a link, leads upwards, or is no folder, and where the file is not a plain one.
pub(crate) fn open_file(folder: &Path, path: &Path) -> io::Result<File> {
    let always = OFlags::RDONLY | OFlags::CLOEXEC;
    let mut here = open(folder, always | OFlags::DIRECTORY, Mode::empty())?;
    let mut parts = path.components().peekable();
    let refused = || io::Error::from(io::ErrorKind::InvalidInput);
    while let Some(part) = parts.next() {
        let Component::Normal(name) = part else { return Err(refused()) };
        // What is no file must not keep us waiting for who writes into it.
        let what = if parts.peek().is_some() { OFlags::DIRECTORY } else { OFlags::NONBLOCK };
        here = openat(&here, name, always | OFlags::NOFOLLOW | what, Mode::empty())?;
    }
    let file = File::from(here);
    if file.metadata()?.is_file() { Ok(file) } else { Err(refused()) }
}

/// Names of the plain files in a folder, which is given by its path below another and must not be
/// reached through a link; none when it cannot be read.
pub(crate) fn names(folder: &Path, path: &Path) -> Vec<String> {
    let mut here = folder.to_owned();
    for part in path.components() {
        here.push(part);
        if !here.symlink_metadata().is_ok_and(|kind| kind.is_dir()) {
            return Vec::new();
        }
    }
    let entries = std::fs::read_dir(here).into_iter().flatten().flatten();
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    files.filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_and_ways_out_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let atlas = dir.path().join("atlas");
        std::fs::create_dir_all(atlas.join("report/tables")).unwrap();
        std::fs::write(dir.path().join("secret"), "secret").unwrap();
        std::fs::write(atlas.join("report/tables/a.csv"), "a").unwrap();
        symlink("../../secret", atlas.join("report/report.html")).unwrap();
        symlink(dir.path(), atlas.join("report/figures")).unwrap();
        symlink("tables", atlas.join("report/inside")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, atlas.join("report/pipe"), Mode::RUSR | Mode::WUSR).unwrap();
        let open = |path: &str| open_file(&atlas, Path::new(path));
        let mut text = String::new();
        open("report/tables/a.csv").unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "a");
        for path in [
            "report/report.html",
            "report/figures/secret",
            "report/inside/a.csv",
            "../secret",
            "report/../report/tables/a.csv",
            "report/tables",
            "report/pipe",
            "/etc/passwd",
            "",
        ] {
            assert!(open(path).is_err(), "{path}");
        }
        assert_eq!(names(&atlas, Path::new("report/tables")), ["a.csv"]);
        assert!(names(&atlas, Path::new("report")).is_empty());
        assert!(names(&atlas, Path::new("report/figures")).is_empty());
        // The folder itself may be one.
        symlink(&atlas, dir.path().join("link")).unwrap();
        assert!(open_file(&dir.path().join("link"), Path::new("report/tables/a.csv")).is_ok());
    }
}
