//! Man pages, from the same text as the help.

use std::path::Path;

use anyhow::Context;
use clap::CommandFactory;

use crate::Exit;
use crate::args::Args;

pub(crate) fn run(folder: &Path) -> anyhow::Result<Exit> {
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    clap_mangen::generate_to(Args::command(), folder)
        .with_context(|| format!("writing man pages to {}", folder.display()))?;
    Ok(Exit::Done)
}
