//! Onionskin finds the copies in a web: stages, resume, progress events.
