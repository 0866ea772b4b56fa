//! Runs `libocloc` in a process of its own.
//!
//! The library is not safe to call in one's own process on untrusted input: it calls
//! `exit` on SPIR-V it cannot read, may crash or hang, prints on standard output whatever it is told, and
//! leaves files `kernel.visaasm`, `kernel_f0.visaasm`, … in the working directory while it emits vISA.
//! The worker's working directory is one where no file can be created, which the library tolerates; or, where there is none, a new one
//! that is removed.
//!
//! The parent starts any command that ends up in [`serve_ocloc_worker`], sends one request on its standard
//! input, and looks for one marked reply among what it prints.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::error::ContainerError;
use super::limits;
use super::ocloc::{CompileRequest, Compiled, Ocloc, Product, SourceKind, Survey};

/// Starts the reply; the library's own prints may stand before and after it.
const MARK: &[u8] = b"\0visa-jit ocloc reply\0\n";
/// A directory that exists and takes no files.
const BARREN_DIRECTORY: &str = "/proc/self";
/// First field of each request. The worker may be a command of another version than its caller, as the OpenCL driver's is: it
/// changes with the fields that follow.
const PROTOCOL: &[u8] = b"visa-jit worker 2";
/// The request that is no compilation: a message of this field after the first.
const SURVEY: &[u8] = b"survey";
const POLL: Duration = Duration::from_millis(2);

/// Compiles one source in a child process.
///
/// `worker` must end up in [`serve_ocloc_worker`]; its input, output and working directory are set here, so
/// relative `-I` paths in the options do not work: pass headers in the request, or absolute paths. A worker
/// that crashes, exits or is not done within `timeout` gives [`ContainerError::CompileFailed`] with what it
/// printed.
pub fn compile_in_worker(
    worker: Command,
    request: &CompileRequest<'_>,
    timeout: Duration,
) -> Result<Compiled, ContainerError> {
    let Answer {
        status,
        output,
        errors,
    } = ask(worker, encode_request(request), timeout)?;
    if let Some((printed, reply)) = split(&output, MARK)
        && let Some(reply) = decode_reply(request, reply)
    {
        return reply.map_err(|error| with_printed(error, printed));
    }
    let ended = ended(status, timeout);
    let parts = [ended.as_bytes(), &output, &errors].map(String::from_utf8_lossy);
    let parts: Vec<_> = parts
        .iter()
        .map(|part| part.trim())
        .filter(|part| !part.is_empty())
        .collect();
    let code = status.and_then(|status| status.code()).unwrap_or(-1);
    Err(failed(request, code, parts.join("\n")))
}

/// Finds the compiler in a child process and asks it what it is. `worker` and `timeout` are as for [`compile_in_worker`].
///
/// # Errors
/// When the worker or the compiler does not answer. That there is no compiler is an answer.
pub fn survey_in_worker(worker: Command, timeout: Duration) -> Result<Survey, ContainerError> {
    let mut message = Vec::new();
    put(&mut message, &[PROTOCOL, SURVEY]);
    let answer = ask(worker, message, timeout)?;
    let broken = || ContainerError::Worker(ended(answer.status, timeout));
    let (_, mut reply) = split(&answer.output, MARK).ok_or_else(broken)?;
    let [kind, _, log, found] = [(); 4].map(|()| field(&mut reply));
    match (kind, log, found) {
        (Some(b"ok"), _, Some(found)) => {
            serde_json::from_slice(found).map_err(|error| ContainerError::Worker(error.to_string()))
        }
        (Some(_), Some(log), _) => Err(ContainerError::Worker(
            String::from_utf8_lossy(log).into_owned(),
        )),
        _ => Err(broken()),
    }
}

/// How a worker ended, and what it printed.
struct Answer {
    /// None if it did not end in time.
    status: Option<ExitStatus>,
    output: Vec<u8>,
    errors: Vec<u8>,
}

/// Starts a worker, sends it a message, and waits for its end.
fn ask(mut worker: Command, message: Vec<u8>, timeout: Duration) -> Result<Answer, ContainerError> {
    let broken = |error: io::Error| ContainerError::Worker(error.to_string());
    worker
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // Removed at the end of this function.
    let _removed;
    if Path::new(BARREN_DIRECTORY).is_dir() {
        worker.current_dir(BARREN_DIRECTORY);
    } else {
        let directory = tempfile::tempdir().map_err(broken)?;
        worker.current_dir(directory.path());
        _removed = directory;
    }
    let mut child = worker.spawn().map_err(broken)?;
    let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (status, output, errors) = thread::scope(|scope| {
        // A worker that dies early does not read its input; its status says why.
        scope.spawn(move || input.map(|mut pipe| pipe.write_all(&message)));
        let output = scope.spawn(move || read_all(output));
        let errors = scope.spawn(move || read_all(errors));
        let status = wait(&mut child, timeout);
        (
            status,
            output.join().unwrap_or_default(),
            errors.join().unwrap_or_default(),
        )
    });
    Ok(Answer {
        status: status.map_err(broken)?,
        output,
        errors,
    })
}

fn ended(status: Option<ExitStatus>, timeout: Duration) -> String {
    match status {
        Some(status) => format!("the compiler ended its process ({status})"),
        None => format!("the compiler did not finish within {timeout:?}"),
    }
}

/// The worker's side: answers the one request on standard input. Exit with success afterwards.
pub fn serve_ocloc_worker() -> io::Result<()> {
    let mut message = Vec::new();
    io::stdin()
        .lock()
        .take(limits::MAX_WORKER_BYTES)
        .read_to_end(&mut message)?;
    let result = match fields(&message).as_deref() {
        Some([PROTOCOL, SURVEY]) => serve_survey(),
        Some([PROTOCOL, request @ ..]) => serve(request),
        Some(_) => Err(ContainerError::BadRequest(format!(
            "this command is visa-jit {}, and what asks it to compile is of another version: both have to be of one build",
            env!("CARGO_PKG_VERSION")
        ))),
        None => Err(ContainerError::BadRequest(
            "the worker was sent nothing it understands".to_owned(),
        )),
    };
    let mut reply = MARK.to_vec();
    match &result {
        Ok(done) => put(&mut reply, &[b"ok", b"0", done.log.as_bytes(), &done.zebin]),
        Err(ContainerError::CompileFailed { code, log, .. }) => {
            put(
                &mut reply,
                &[b"failed", code.to_string().as_bytes(), log.as_bytes(), b""],
            );
        }
        Err(ContainerError::OclocMissing { detail }) => {
            put(&mut reply, &[b"missing", b"0", detail.as_bytes(), b""]);
        }
        Err(error) => put(
            &mut reply,
            &[b"error", b"0", error.to_string().as_bytes(), b""],
        ),
    }
    let mut out = io::stdout().lock();
    out.write_all(&reply)?;
    out.flush()
}

/// The survey, in place of a zebin.
fn serve_survey() -> Result<Compiled, ContainerError> {
    let found = serde_json::to_vec(&Ocloc::survey()?);
    Ok(Compiled {
        zebin: found.map_err(|error| ContainerError::Worker(error.to_string()))?,
        log: String::new(),
    })
}

fn serve(fields: &[&[u8]]) -> Result<Compiled, ContainerError> {
    let bad = || ContainerError::BadRequest("the worker was sent an incomplete request".to_owned());
    let text = |bytes| std::str::from_utf8(bytes).map_err(|_| bad());
    let [
        name,
        source,
        kind,
        device,
        options,
        internal_options,
        headers @ ..,
    ] = fields
    else {
        return Err(bad());
    };
    let headers = headers
        .as_chunks::<2>()
        .0
        .iter()
        .map(|[name, data]| Ok((text(name)?, *data)))
        .collect::<Result<Vec<_>, ContainerError>>()?;
    let (kind, product) = match *kind {
        b"c" => (SourceKind::OpenClC, Product::Zebin),
        b"c to spirv" => (SourceKind::OpenClC, Product::SpirV),
        b"spirv" => (SourceKind::SpirV, Product::Zebin),
        _ => return Err(bad()),
    };
    Ocloc::load()?.compile(&CompileRequest {
        name: text(name)?,
        source,
        product,
        kind,
        headers: &headers,
        device: text(device)?.parse().map_err(ContainerError::BadRequest)?,
        options: text(options)?,
        internal_options: text(internal_options)?,
    })
}

fn encode_request(request: &CompileRequest<'_>) -> Vec<u8> {
    let kind: &[u8] = match (request.kind, request.product) {
        (SourceKind::SpirV, _) => b"spirv",
        (SourceKind::OpenClC, Product::Zebin) => b"c",
        (SourceKind::OpenClC, Product::SpirV) => b"c to spirv",
    };
    let mut message = Vec::new();
    put(
        &mut message,
        &[PROTOCOL, request.name.as_bytes(), request.source, kind],
    );
    put(&mut message, &[request.device.as_str().as_bytes()]);
    put(
        &mut message,
        &[
            request.options.as_bytes(),
            request.internal_options.as_bytes(),
        ],
    );
    for (name, data) in request.headers {
        put(&mut message, &[name.as_bytes(), data]);
    }
    message
}

/// What the worker answered; `None` if that is not a reply.
fn decode_reply(
    request: &CompileRequest<'_>,
    reply: &[u8],
) -> Option<Result<Compiled, ContainerError>> {
    let mut rest = reply;
    let [kind, code, log, zebin] = [(); 4].map(|()| field(&mut rest));
    let (kind, code, zebin) = (kind?, code?, zebin?);
    let log = String::from_utf8_lossy(log?).into_owned();
    Some(match kind {
        b"ok" => Ok(Compiled {
            zebin: zebin.to_vec(),
            log,
        }),
        b"failed" => {
            let code = std::str::from_utf8(code)
                .ok()
                .and_then(|code| code.parse().ok());
            Err(failed(request, code.unwrap_or(-1), log))
        }
        b"missing" => Err(ContainerError::OclocMissing { detail: log }),
        _ => Err(ContainerError::Worker(log)),
    })
}

fn failed(request: &CompileRequest<'_>, code: i32, log: String) -> ContainerError {
    let (name, device) = (request.name.to_owned(), request.device.to_string());
    ContainerError::CompileFailed {
        name,
        device,
        code,
        log,
    }
}

/// Adds what the library printed before the reply to a build log that is otherwise empty.
fn with_printed(mut error: ContainerError, printed: &[u8]) -> ContainerError {
    if let ContainerError::CompileFailed { log, .. } = &mut error
        && log.is_empty()
    {
        *log = String::from_utf8_lossy(printed).trim().to_owned();
    }
    error
}

/// Waits for the child; kills it and returns `None` when the time is over.
fn wait(child: &mut Child, timeout: Duration) -> io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() >= timeout {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(POLL);
    }
}

fn read_all(pipe: Option<impl Read>) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        // What arrived before an error is still worth showing.
        let _ = pipe.take(limits::MAX_WORKER_BYTES).read_to_end(&mut bytes);
    }
    bytes
}

fn split<'b>(bytes: &'b [u8], mark: &[u8]) -> Option<(&'b [u8], &'b [u8])> {
    let at = bytes
        .windows(mark.len())
        .position(|window| window == mark)?;
    let (before, rest) = bytes.split_at_checked(at)?;
    Some((before, rest.get(mark.len()..)?))
}

/// Appends length-prefixed fields.
fn put(message: &mut Vec<u8>, fields: &[&[u8]]) {
    for field in fields {
        message.extend_from_slice(&(field.len() as u64).to_le_bytes());
        message.extend_from_slice(field);
    }
}

/// Takes one field off the front.
fn field<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let (length, tail) = rest.split_first_chunk::<8>()?;
    let (field, tail) =
        tail.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    *rest = tail;
    Some(field)
}

/// All fields of a message; `None` if it is cut short.
fn fields(message: &[u8]) -> Option<Vec<&[u8]>> {
    let mut rest = message;
    let mut all = Vec::new();
    while !rest.is_empty() {
        all.push(field(&mut rest)?);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use super::super::{Blame, Device, Zebin, infer_device};
    use super::*;
    use crate::isa::DeviceName;

    const ROLE: &str = "VISA_JIT_TEST_WORKER";
    const TIMEOUT: Duration = Duration::from_secs(60);

    /// Not a test of its own: the other tests start this test binary as their worker.
    #[test]
    fn worker_entry() {
        match std::env::var(ROLE).as_deref() {
            Ok("serve") => serve_ocloc_worker().unwrap(),
            Ok("hang") => thread::sleep(TIMEOUT),
            Ok("die") => std::process::exit(7),
            _ => {}
        }
    }

    fn worker(role: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let entry = concat!(module_path!(), "::worker_entry");
        let entry = entry.split_once("::").unwrap().1;
        command
            .args(["--exact", entry, "--nocapture", "--test-threads=1"])
            .env(ROLE, role);
        command
    }

    fn compile(request: &CompileRequest<'_>) -> Option<Result<Compiled, ContainerError>> {
        match compile_in_worker(worker("serve"), request, TIMEOUT) {
            Err(error @ ContainerError::OclocMissing { .. }) => {
                eprintln!("skipped: {error}");
                None
            }
            result => Some(result),
        }
    }

    #[test]
    fn compiles_for_every_device() {
        let every = if visa_test_common::full() { 1 } else { 9 };
        for device in DeviceName::all().step_by(every) {
            // No version knows all of them.
            let known = |log: &str| !log.contains("Cannot get HW Info");
            let source = b"kernel void k(global int *x) { x[get_global_id(0)] = 1; }";
            let Some(result) = compile(&CompileRequest::new("t.cl", source, device)) else {
                return;
            };
            let compiled = match result {
                Err(ContainerError::CompileFailed { log, .. }) if !known(&log) => continue,
                result => result.unwrap(),
            };
            let zebin = Zebin::parse(&compiled.zebin).unwrap();
            assert_eq!(zebin.kernels[0].name, "k");
            let told = infer_device(&zebin).device;
            assert_eq!(told, Some(device.platform()), "{device}");
        }
    }

    #[test]
    fn options_and_headers_reach_the_compiler() {
        let request = CompileRequest {
            headers: &[("part.h", b"#define TYPE float\n")],
            options: "-DNAME=scaled",
            ..CompileRequest::new(
                "t.cl",
                b"#include \"part.h\"\nkernel void NAME(global TYPE *x) { x[0] *= 2; }",
                Device::Skl,
            )
        };
        let Some(result) = compile(&request) else {
            return;
        };
        let zebin = Zebin::parse(&result.unwrap().zebin).unwrap();
        assert_eq!(zebin.kernels[0].name, "scaled");
        assert_eq!(
            zebin.ze_info.args_of("scaled")[0].type_and_size(),
            ("float*", Some(8))
        );
    }

    #[test]
    fn a_caller_of_another_version_is_told() {
        let mut message = Vec::new();
        put(&mut message, &[b"visa-jit worker 1", SURVEY]);
        let answer = ask(worker("serve"), message, TIMEOUT).unwrap();
        let said = String::from_utf8_lossy(&answer.output).into_owned();
        assert!(said.contains("of another version"), "{said}");
    }

    #[test]
    fn a_failed_build_carries_its_log() {
        let source = b"kernel void k(global int *x) { y = 1; }";
        let request = CompileRequest::new("t.cl", source, Device::Pvc);
        let Some(result) = compile(&request) else {
            return;
        };
        let error = result.unwrap_err();
        assert_eq!(error.blame(), Blame::Input);
        assert!(
            error.to_string().contains("undeclared identifier 'y'"),
            "{error}"
        );
    }

    #[test]
    fn spirv_compiles_too() {
        use object::{Object as _, ObjectSection as _};
        let source = b"kernel void k(global int *x) { *x = 1; }";
        let Some(result) = compile(&CompileRequest::new("t.cl", source, Device::Dg2)) else {
            return;
        };
        let zebin = result.unwrap().zebin;
        let elf = object::File::parse(zebin.as_slice()).unwrap();
        let spirv = elf.section_by_name(".spv").unwrap().data().unwrap();
        let request = CompileRequest::new("t.spv", spirv, Device::Skl);
        assert_eq!(request.kind, SourceKind::SpirV);
        let zebin = Zebin::parse(&compile(&request).unwrap().unwrap().zebin).unwrap();
        assert_eq!(zebin.kernels[0].name, "k");
        assert_eq!(infer_device(&zebin).device, Some(Device::Skl));
    }

    #[test]
    fn modules_are_linked() {
        let module = |source: &'static [u8]| {
            let request = CompileRequest {
                product: Product::SpirV,
                ..CompileRequest::new("t.cl", source, Device::Skl)
            };
            compile(&request).map(|made| made.unwrap().zebin)
        };
        let caller = module(b"int f(int); kernel void k(global int *x) { *x = f(*x); }");
        let (Some(caller), Some(called)) = (caller, module(b"int f(int x) { return x * 7; }"))
        else {
            return;
        };
        let request = CompileRequest {
            headers: &[("called", &called)],
            ..CompileRequest::new("t.spv", &caller, Device::Skl)
        };
        let zebin = Zebin::parse(&compile(&request).unwrap().unwrap().zebin).unwrap();
        assert_eq!(zebin.kernels[0].name, "k");
        // A kernel whose function is defined nowhere is an error, and so is a function that two modules define.
        let alone = CompileRequest {
            headers: &[("caller", &caller)],
            ..request
        };
        let error = compile(&alone).unwrap().unwrap_err();
        assert!(
            matches!(error, ContainerError::CompileFailed { .. }),
            "{error}"
        );
    }

    #[test]
    fn spirv_that_makes_the_library_exit_is_an_error() {
        let request = CompileRequest::new("t.spv", b"\x03\x02\x23\x07....", Device::Pvc);
        assert_eq!(request.kind, SourceKind::SpirV);
        let Some(result) = compile(&request) else {
            return;
        };
        let error = result.unwrap_err();
        assert!(
            matches!(error, ContainerError::CompileFailed { .. }),
            "{error}"
        );
    }

    #[test]
    fn a_dead_or_hanging_worker_is_an_error() {
        let request = CompileRequest::new("t.cl", b"kernel", Device::Skl);
        let error = compile_in_worker(worker("die"), &request, TIMEOUT).unwrap_err();
        assert!(
            matches!(&error, ContainerError::CompileFailed { code: 7, .. }),
            "{error}"
        );
        let error =
            compile_in_worker(worker("hang"), &request, Duration::from_millis(200)).unwrap_err();
        assert!(error.to_string().contains("did not finish"), "{error}");
    }

    #[test]
    fn a_worker_that_does_not_start_is_the_environment() {
        let request = CompileRequest::new("t.cl", b"kernel", Device::Skl);
        let error = compile_in_worker(Command::new("/nonexistent"), &request, TIMEOUT).unwrap_err();
        assert_eq!(error.blame(), Blame::Environment);
    }

    #[test]
    fn messages_that_are_cut_short_are_refused() {
        let request = CompileRequest::new("t.cl", b"kernel", Device::Skl);
        let message = encode_request(&request);
        let whole = fields(&message).unwrap();
        assert_eq!((whole[0], whole.len()), (PROTOCOL, 7));
        for end in 1..message.len() {
            // After the protocol's name, as `run` passes a request on.
            let cut = fields(&message[..end]);
            let served = cut.is_none_or(|cut| cut.get(1..).is_none_or(|rest| serve(rest).is_err()));
            assert!(served, "{end}");
        }
    }
}
