"""Files of the format `grade qid:... 1:... 2:... # comment`: one grammar, read whole and in blocks, and the writer."""
