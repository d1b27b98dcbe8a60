"""Why a reply is as it is: evidence for every word, keyword and state entity, what-if, and tests of the evidence."""
