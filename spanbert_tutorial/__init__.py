"""SpanBERT, from the ground up: the code that the book's chapters build and import.

One chapter, one module, the same name. A module imports only from smaller floors:
0 `errors` `data_files` `weights` `config` `almanac_world` `almanac_text` ·
1 `corpora` `almanac` `wordpiece` `masking` `inputs` `bert` ·
2 `span_masking` `sentence_pairs` `single_sequence` `boundary` · 3 `snapshots` `metrics` `training` ·
4 `batches` `pretraining` ·
5 `checkpoints` `runs` ·
6 `ablation` `figures` `directions` `tasks` `plateau` `experiments` `exercises` `commands` `__main__`.
"""

__version__ = "0.1.0"
