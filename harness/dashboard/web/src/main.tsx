// The page's entry point. It shows the embedded run, if any, or else the runs on the dashboard's server.
import { render } from "preact";
import { App } from "./app";
import { EmbeddedSource, embedded, ServerSource } from "./source";
import "./styles/index.css";
import { applyTheme } from "./theme";

applyTheme();
const target = document.getElementById("app");
if (!target) throw new Error("index.html has no element with the id app");

embedded(document)
  .then((source) => {
    if (source instanceof EmbeddedSource && location.hash.length < 3)
      history.replaceState(null, "", `#/run/${encodeURIComponent(source.id)}`);
    render(<App source={source ?? new ServerSource()} />, target);
  })
  .catch((error: unknown) => {
    render(<p role="alert">Cannot read the results in this file: {String(error)}</p>, target);
  });
