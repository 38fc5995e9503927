"""Files of the format `grade qid:... 1:... 2:... # comment`, read strictly: blocks of bytes, lines, and the writer."""
