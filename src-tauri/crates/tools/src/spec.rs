//! What a model is told about the tools.
//!
//! Guarantee: the order and the bytes are the same on every call, and on every machine with the same
//! shell, since they stand at the front of each request and a provider caches by prefix. The
//! schemas below are written with sorted keys, so that they read back to the same bytes.

use holdfast_domain::transcript::outbound::ToolSpec;

use crate::error::ToolError;
use crate::shell::program::Shell;

/// Name, description, schema.
const SPECS: [(&str, &str, &str); 10] = [
    (
        "read_file",
        "Reads a text file of the workspace. Returns plain text without line numbers; if only a part is returned, a first line in brackets says which lines and how to go on. Use offset and limit for large files. Line ends are shown as \\n, whatever the file has. Bytes that are not UTF-8 are shown as a replacement character.",
        r#"{"additionalProperties":false,"properties":{"limit":{"description":"Number of lines, 2000 if absent.","maximum":100000,"minimum":1,"type":"integer"},"offset":{"description":"First line, from 1.","minimum":1,"type":"integer"},"path":{"description":"Relative to the workspace, or absolute inside it.","type":"string"}},"required":["path"],"type":"object"}"#,
    ),
    (
        "list_dir",
        "Lists one folder of the workspace, sorted: folders end with /, links with @, files have their size in bytes. Hidden and ignored files are listed too.",
        r#"{"additionalProperties":false,"properties":{"path":{"description":"A folder; \".\" is the workspace.","type":"string"}},"required":["path"],"type":"object"}"#,
    ),
    (
        "glob",
        "Finds files by name. Returns paths relative to the workspace, sorted, at most 1000. Files ignored by .gitignore are left out, links are not followed. * and ? stay within one folder, ** crosses folders: \"**/*.rs\" finds all Rust files, \"*.rs\" only those directly in the folder.",
        r#"{"additionalProperties":false,"properties":{"path":{"description":"Folder to search in; the workspace if absent.","type":"string"},"pattern":{"description":"Glob, relative to path.","type":"string"}},"required":["pattern"],"type":"object"}"#,
    ),
    (
        "grep",
        "Searches file contents by regular expression (Rust syntax, one line at a time; (?i) ignores case). Returns path:line:text, sorted by path, at most 500 lines. Files ignored by .gitignore and binary files are left out, links are not followed.",
        r#"{"additionalProperties":false,"properties":{"glob":{"description":"Only files that match, e.g. \"*.rs\" (by name) or \"src/**/*.ts\" (by path in the searched folder).","type":"string"},"path":{"description":"Folder or file to search; the workspace if absent.","type":"string"},"pattern":{"description":"Regular expression.","type":"string"}},"required":["pattern"],"type":"object"}"#,
    ),
    (
        "write_file",
        "Writes a whole file: creates it, with missing folders, or replaces all of its content by exactly this one. To change a part of a file use edit_file. The write is whole or does not happen.",
        r#"{"additionalProperties":false,"properties":{"content":{"description":"The whole new content.","type":"string"},"path":{"description":"Relative to the workspace, or absolute inside it.","type":"string"}},"required":["content","path"],"type":"object"}"#,
    ),
    (
        "edit_file",
        "Changes parts of a UTF-8 text file. Edits apply in order, each to the result of the one before; if one can't be applied, none is. old_text must be copied exactly from the file, indentation included, and occur exactly once unless replace_all is true: include enough lines around it. Line ends and byte order mark stay as they are.",
        r#"{"additionalProperties":false,"properties":{"edits":{"items":{"additionalProperties":false,"properties":{"new_text":{"type":"string"},"old_text":{"description":"Text that is in the file now.","type":"string"},"replace_all":{"description":"Replace every occurrence.","type":"boolean"}},"required":["new_text","old_text"],"type":"object"},"minItems":1,"type":"array"},"path":{"description":"Relative to the workspace, or absolute inside it.","type":"string"}},"required":["edits","path"],"type":"object"}"#,
    ),
    (
        "fetch",
        "Gets a URL (http or https) by GET or HEAD, following at most 5 redirects, 30 s and 1 MiB at most. Returns status, content type and the text as it is; of binary content only type and size. It has no cookies and no credentials.",
        r#"{"additionalProperties":false,"properties":{"method":{"description":"GET if absent.","enum":["GET","HEAD"],"type":"string"},"url":{"type":"string"}},"required":["url"],"type":"object"}"#,
    ),
    (
        "shell",
        "Runs a command by {shell} in the workspace folder. There is no terminal and stdin is empty: a command that asks something fails or reads end-of-file, so pass flags like --yes, and don't start editors, pagers or other interactive programs. stdout and stderr come back together, in order; the last line in brackets says how the command ended. A long output is cut in the middle. The folder and variables of one call are not kept for the next: use cd and && within one command. What still runs when the shell has exited goes on as a job and is not waited for. With background true the command itself is started as a job and the call answers at once with the job's id: use it for servers, watchers and long builds; it has no time limit unless timeout_s is given. Repeating a stopped command repeats its effects: look first at what it has done. With read_only true the command runs in a sandbox for looking around, unasked, side by side with other reads, and also while writes are blocked: everything is mounted read-only, there is no network, no socket and no process of outside (ps shows the sandbox alone), /run and /tmp are empty, keys are hidden. Use it for git status, git log, git diff, ls, find, cat. A command that writes fails in it; that says nothing about the command itself.",
        r#"{"additionalProperties":false,"properties":{"background":{"description":"Start as a job and answer at once; not with read_only.","type":"boolean"},"command":{"type":"string"},"read_only":{"description":"Run in a sandbox that can change nothing, for looking around.","type":"boolean"},"timeout_s":{"description":"Seconds until the command is stopped; a default applies if absent.","maximum":86400,"minimum":1,"type":"integer"}},"required":["command"],"type":"object"}"#,
    ),
    (
        "job_output",
        "Shows what a job of this session printed, and whether it runs or how it ended. A job is a command that was started with background true, that the person moved to the background, or that left something running. Without offset the end of the output is shown, at most 24 KiB; the last line says which bytes of how many these are.",
        r#"{"additionalProperties":false,"properties":{"id":{"description":"The job's id, as it was told.","type":"string"},"offset":{"description":"Byte of the output from which on to show.","minimum":0,"type":"integer"}},"required":["id"],"type":"object"}"#,
    ),
    (
        "job_stop",
        "Ends a job of this session with all its processes and waits for its real end. What it has done so far stays.",
        r#"{"additionalProperties":false,"properties":{"id":{"description":"The job's id, as it was told.","type":"string"}},"required":["id"],"type":"object"}"#,
    ),
];

/// All tools in their order.
///
/// # Errors
/// None in practice: the schemas are constants, and a test reads them.
pub(crate) fn all() -> Result<Vec<ToolSpec>, ToolError> {
    SPECS
        .iter()
        .map(|(name, description, parameters)| {
            Ok(ToolSpec {
                name: (*name).to_owned(),
                description: description.replace("{shell}", Shell::of_this_system().description()),
                parameters: serde_json::from_str(parameters)
                    .map_err(|error| ToolError::Internal(error.to_string()))?,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_read_back_to_the_same_bytes() {
        let specs = all().unwrap();
        assert_eq!(specs.len(), SPECS.len());
        for (spec, (_, _, text)) in specs.iter().zip(SPECS) {
            assert_eq!(spec.parameters.to_string(), text, "{}", spec.name);
        }
    }
}
