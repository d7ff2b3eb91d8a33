"""magika_answers.py LIST OUT: what the magika package makes of the files that LIST names, one path after each NUL.

Writes one JSON object: the folder of the model; for each file either its label or its tokens, and for some of them
scores and the labels in every mode; and the labels for a grid of model labels and scores. Exits with 77 when the package is not there.
"""

import json
import os
import sys
from pathlib import Path

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # before the import, which would leave files in the home folder

try:
    import magika
    from magika import Magika, PredictionMode
except ImportError:
    sys.exit(77)

MODES = {"high_confidence": PredictionMode.HIGH_CONFIDENCE, "medium_confidence": PredictionMode.MEDIUM_CONFIDENCE,
         "best_guess": PredictionMode.BEST_GUESS}


def main(list_path, out_path):
    peers = {name: Magika(prediction_mode=mode) for name, mode in MODES.items()}
    peer = peers["high_confidence"]
    links = Magika(no_dereference=True)
    paths = [Path(os.fsdecode(name)) for name in Path(list_path).read_bytes().split(b"\0")[:-1]]
    files, asked = [], []
    for path in paths:
        result, features = peer._get_result_or_features_from_path(path)
        link = links._get_result_or_features_from_path(path)[0]
        entry = {"link": str(link.output.label) if link is not None and link.ok else ""}
        if result is None:
            entry["tokens"] = list(features.beg) + list(features.mid) + list(features.end)
            asked.append((path, features, entry))
        elif result.ok:
            entry.update(label=str(result.output.label), score=result.score)
        else:
            entry["error"] = str(result.status)
        files.append(entry)
    scored = asked[::5]  # running the model is slow, and every file would exercise the same rules
    rows = peer._get_raw_predictions([(path, features) for path, features, _ in scored])
    for (_, _, entry), row in zip(scored, rows):
        best = max(range(len(row)), key=row.__getitem__)
        label = peer._model_config.target_labels_space[best]
        entry["scores"], entry["score"] = row, row[best]
        entry["labels"] = {name: str(mode._get_output_label_from_dl_label_and_score(label, row[best])[0])
                           for name, mode in peers.items()}
    grid = []
    for label in peer.get_model_content_types():
        if str(label) == "undefined":
            continue
        for score in (0.0, 0.3, 0.4999, 0.5, 0.75, 0.8999, 0.9, 0.95, 1.0):
            for name, mode in peers.items():
                out, reason = mode._get_output_label_from_dl_label_and_score(label, score)
                grid.append([str(label), score, name, str(out), str(reason)])
    answers = {"folder": str(Path(magika.__file__).parent / "models" / peer.get_model_name()), "files": files, "grid": grid}
    Path(out_path).write_text(json.dumps(answers))


main(*sys.argv[1:])
