"""What each backend needs to run a loop: one module a backend, no user-facing logic."""
