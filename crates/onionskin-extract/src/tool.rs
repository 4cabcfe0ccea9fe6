//! Programs that are run for their output, and never trusted.
//!
//! A reader of PDF or PostScript that is fed by strangers may hang, or write without end. So each
//! runs with a clock and with a limit on what is taken of its output, and is killed when either
//! runs out. Input goes in by a thread of its own: a program that writes before it has read
//! everything would otherwise wait for us while we wait for it.

use crate::ExtractError;
use std::io::{ErrorKind, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Limits of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToolLimits {
    pub(crate) time: Duration,
    pub(crate) output_bytes: u64,
    /// Memory of its own that the program may have.
    pub(crate) memory_bytes: u64,
}

/// Kills the child when dropped, so that no way out leaves one behind.
struct Guard(Child);

impl Drop for Guard {
    fn drop(&mut self) {
        // Both fail when it has ended already, which is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a program over `input` and gives back what it wrote to its standard output.
pub(crate) fn run(
    tool: &'static str,
    mut command: Command,
    input: &[u8],
    limits: ToolLimits,
) -> Result<Vec<u8>, ExtractError> {
    let deadline = Instant::now() + limits.time;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let child = command.spawn().map_err(|error| match error.kind() {
        ErrorKind::NotFound => ExtractError::ToolMissing { tool },
        _ => ExtractError::Failed { tool, reason: error.to_string() },
    })?;
    limit_memory(&child, limits.memory_bytes);
    let mut guard = Guard(child);
    let (Some(mut stdin), Some(stdout)) = (guard.0.stdin.take(), guard.0.stdout.take()) else {
        return Err(ExtractError::Failed { tool, reason: "its pipes could not be opened".to_owned() });
    };
    let (send, receive) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // A program that closes its input early has seen what it wanted.
            let _ = stdin.write_all(input);
        });
        scope.spawn(move || {
            let mut output = Vec::new();
            let result = stdout.take(limits.output_bytes + 1).read_to_end(&mut output).map(|_| output);
            let _ = send.send(result);
        });
        let result = match receive.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Ok(output)) if output.len() as u64 > limits.output_bytes => {
                Err(ExtractError::TooLarge { limit: limits.output_bytes })
            }
            Ok(Ok(output)) => wait(&mut guard.0, deadline, tool, limits).map(|()| output),
            Ok(Err(error)) => Err(ExtractError::Failed { tool, reason: error.to_string() }),
            Err(_) => Err(ExtractError::TimedOut { tool, seconds: limits.time.as_secs() }),
        };
        // Ends the pipes, and with them the threads.
        drop(guard);
        result
    })
}

/// Bounds what a program may ask for. It has not been given its input yet, and without the limit it
/// would do its work all the same.
///
/// The limit is on data and not on addresses: a program maps its own code and libraries, and an
/// allocator reserves addresses that it never uses, a thread 64 MiB of them.
fn limit_memory(child: &Child, bytes: u64) {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};
        // What we are limited to ourselves is inherited, and cannot be raised.
        let bytes = Some(bytes.min(getrlimit(Resource::Data).maximum.unwrap_or(u64::MAX)));
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let limited = prlimit(pid, Resource::Data, Rlimit { current: bytes, maximum: bytes });
        if let Err(error) = limited {
            tracing::warn!(%error, "the memory of a document reader is not limited");
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (child, bytes);
}

/// Waits for a program that has closed its output, and wants it to have ended well.
fn wait(
    child: &mut Child,
    deadline: Instant,
    tool: &'static str,
    limits: ToolLimits,
) -> Result<(), ExtractError> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return Ok(()),
            Ok(Some(status)) => {
                return Err(ExtractError::Ended { tool, status });
            }
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(1)),
            Ok(None) => return Err(ExtractError::TimedOut { tool, seconds: limits.time.as_secs() }),
            Err(error) => return Err(ExtractError::Failed { tool, reason: error.to_string() }),
        }
    }
}

#[cfg(test)]
mod tests;
