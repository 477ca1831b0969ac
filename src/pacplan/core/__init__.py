"""What every module may use: checks of arguments, wording, notes on errors, identities."""
