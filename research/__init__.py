"""The evidence behind the book: the harness, the measurements that experiments share, and one file
for each experiment in `experiments`. Page: `book/workshop/what_we_found`."""
