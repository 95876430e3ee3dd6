"""``python -m pytensor_loop.migrate PATH...``: from `pytensor.scan` to `pytensor_loop.scan`.

One call site at a time: `_calls` finds it and binds its arguments, `_read` makes a frozen record of
what it means (`_record`), `_plan` settles every name and every place, `_emit` writes the text.
"""
