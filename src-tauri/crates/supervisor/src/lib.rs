//! holdfast-supervisor
