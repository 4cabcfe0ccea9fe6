use super::*;

fn shell(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

const LIMITS: ToolLimits =
    ToolLimits { time: Duration::from_secs(20), output_bytes: 4 << 20, memory_bytes: 4 << 30 };

#[test]
fn output_comes_back() {
    let input = vec![b'x'; 1 << 20];
    assert_eq!(run("cat", shell("cat"), &input, LIMITS).unwrap(), input);
    // One that does not want its input.
    assert_eq!(run("echo", shell("exec echo a"), &input, LIMITS).unwrap(), b"a\n");
}

#[test]
fn a_missing_program_is_told_apart() {
    let result = run("none", Command::new("onionskin-no-such-program"), b"", LIMITS);
    assert!(matches!(result, Err(ExtractError::ToolMissing { tool: "none" })), "{result:?}");
}

/// A shell that holds 60 MB.
#[cfg(target_os = "linux")]
#[test]
fn memory_is_limited() {
    let greedy = || shell("x=$(head -c 60000000 /dev/zero | tr '\\0' a); echo ${#x}");
    assert_eq!(run("sh", greedy(), b"", LIMITS).unwrap(), b"60000000\n");
    let result = run("sh", greedy(), b"", ToolLimits { memory_bytes: 20 << 20, ..LIMITS });
    assert!(matches!(result, Err(ExtractError::Ended { .. })), "{result:?}");
}

#[test]
fn failing_flooding_and_hanging_programs_are_stopped() {
    let result = run("false", shell("echo a; exit 3"), b"", LIMITS);
    assert!(matches!(result, Err(ExtractError::Ended { .. })), "{result:?}");
    let result = run("yes", shell("exec yes"), b"", LIMITS);
    assert!(matches!(result, Err(ExtractError::TooLarge { limit: 4_194_304 })), "{result:?}");
    let begin = Instant::now();
    let limits = ToolLimits { time: Duration::from_millis(200), ..LIMITS };
    for script in ["exec sleep 60", "exec >&-; exec sleep 60"] {
        let result = run("sleep", shell(script), &vec![0; 1 << 20], limits);
        assert!(matches!(result, Err(ExtractError::TimedOut { .. })), "{result:?}");
    }
    assert!(begin.elapsed() < Duration::from_secs(10));
}
