//! holdfast-testkit
