//! The table of a host's operations. Every route is declared here and nowhere else.

/// HTTP methods that operations use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// GET: changes nothing.
    Get,
    /// POST.
    Post,
    /// PATCH.
    Patch,
    /// DELETE.
    Delete,
}

/// One operation of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// Name, also that of the handler.
    pub name: &'static str,
    /// Method.
    pub method: Method,
    /// Path, with `{id}` for a parameter.
    pub path: &'static str,
    /// Largest body in bytes.
    pub body_limit: usize,
}

/// Largest body of ordinary requests.
pub const SMALL_BODY: usize = 64 * 1024;
/// Largest body of a recovery action (TR-41).
pub const RECOVERY_BODY: usize = 16 * 1024;
/// Largest body of a message.
pub const MESSAGE_BODY: usize = 4 * 1024 * 1024 + 64 * 1024;

macro_rules! operations {
    ($($name:ident $method:ident $path:literal $limit:expr;)*) => {
        /// All operations of a host.
        pub const HOST: &[Operation] = &[
            $(Operation {
                name: stringify!($name),
                method: Method::$method,
                path: $path,
                body_limit: $limit,
            },)*
        ];
    };
}

operations! {
    status            Get    "/status"              0;
    runtime_states    Get    "/runtime-states"      0;
    tool_recovery     Get    "/tool-recovery"       0;
    resolve_recovery  Post   "/tool-recovery"       RECOVERY_BODY;
    events            Get    "/events"              0;
    list_sessions     Get    "/sessions"            0;
    create_session    Post   "/sessions"            SMALL_BODY;
    patch_session     Patch  "/sessions/{id}"       SMALL_BODY;
    delete_session    Delete "/sessions/{id}"       0;
    resume            Post   "/resume"              SMALL_BODY;
    submit            Post   "/submit"              MESSAGE_BODY;
    inbox             Get    "/inbox"               0;
    inbox_receipt     Get    "/inbox/receipt"       0;
    enqueue           Post   "/inbox/items"         MESSAGE_BODY;
    edit_item         Patch  "/inbox/items/{id}"    MESSAGE_BODY;
    delete_item       Delete "/inbox/items/{id}"    0;
    move_item         Post   "/inbox/move"          SMALL_BODY;
    pause_inbox       Post   "/inbox/pause"         SMALL_BODY;
    resume_inbox      Post   "/inbox/resume"        SMALL_BODY;
    cancel            Post   "/cancel"              SMALL_BODY;
    compact           Post   "/compact"             SMALL_BODY;
    rewind            Post   "/rewind"              SMALL_BODY;
    fork              Post   "/fork"                SMALL_BODY;
    pending_prompts   Get    "/pending-prompts"     0;
    approve           Post   "/approve"             SMALL_BODY;
    transcript_page   Get    "/transcript/page"     0;
    transcript_snapshot Get  "/transcript/snapshot" 0;
    diff              Get    "/diff"                0;
    output            Get    "/output"              0;
    jobs              Get    "/jobs"                0;
    cancel_job        Post   "/jobs/cancel"         SMALL_BODY;
    background_job    Post   "/jobs/background"     SMALL_BODY;
}
