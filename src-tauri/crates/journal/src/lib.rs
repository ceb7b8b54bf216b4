//! holdfast-journal
