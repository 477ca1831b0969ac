"""What everybody may know: checks of arguments, wording, notes on errors, identities."""
