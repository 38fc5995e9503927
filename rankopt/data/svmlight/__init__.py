"""Files of the format `grade qid:... 1:... 2:... # comment`: parser, readers and writer."""
