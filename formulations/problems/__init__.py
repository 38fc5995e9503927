"""The gallery: functions from data to a form. None of them can solve what it states."""
