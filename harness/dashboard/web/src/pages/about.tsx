// The view "Machine and method": a run's machine, tool versions, exact command, settings, builds and log.
import type { Machine, MachineLink, RoleMachine, RunDocument } from "../documents";
import { bytes, isNumber, dateTime, percent, seconds, shell } from "../format";
import { usePage } from "../hooks";
import { testName } from "../load";
import { name as loadName } from "../load";
import { Facts } from "../parts/basics";
import { LogView } from "../parts/log-view";
import { PlainTable } from "../parts/plain-table";
import { SourceLink } from "../parts/source-link";
import { EmbeddedSource } from "../source";

export function About({ doc }: { doc: RunDocument }) {
  const { source } = usePage();
  const { run } = doc;
  const omitted = [...run.left_out, ...(source instanceof EmbeddedSource ? source.leftOut : [])];
  const logs = doc.published === ""; // published rounds have no logs
  return (
    <div class="about">
      <MachineFacts machine={run.machine} />
      {run.machines.length > 0 && <RoleMachines machines={run.machines} links={run.links} />}
      <Settings doc={doc} />
      <section aria-labelledby="versions">
        <h2 id="versions">Versions</h2>
        <Facts facts={Object.entries(run.tools).map(([tool, version]) => [tool, <bdi>{version}</bdi>])} />
      </section>
      <Builds doc={doc} />
      {run.problems.length > 0 && (
        <section aria-labelledby="problems" class="wide">
          <h2 id="problems">Problems</h2>
          <ul>
            {run.problems.map((problem) => (
              <li key={problem}>{problem}</li>
            ))}
          </ul>
        </section>
      )}
      {logs && (
        <section aria-labelledby="harness-log" class="wide">
          <h2 id="harness-log">Harness log</h2>
          <LogView run={run.run_id} path="logs/harness.log" />
        </section>
      )}
      {omitted.length > 0 && (
        <section aria-labelledby="left-out" class="wide">
          <h2 id="left-out">{doc.published ? "Omitted from this published round" : "Omitted from this file"}</h2>
          <ul>
            {omitted.map((item) => (
              <li key={item}>{item}</li>
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}

const onOff = (value: boolean | null): string => (value === null ? "unknown" : value ? "on" : "off");

function MachineFacts({ machine }: { machine: Machine }) {
  return (
    <section aria-labelledby="machine">
      <h2 id="machine">Machine</h2>
      {machine.grade && (
        <p>
          <strong>Grade {machine.grade}.</strong>{" "}
          {machine.concerns.length > 0 ? "Likely sources of noise:" : "No likely source of noise was found."}
        </p>
      )}
      {machine.concerns.length > 0 && (
        <ul>
          {machine.concerns.map((concern) => (
            <li key={concern}>{concern}</li>
          ))}
        </ul>
      )}
      <Facts
        facts={[
          ["Host", machine.hostname],
          ["CPU", `${machine.cpu_model}, ${machine.cpus_online} online, ${machine.cpus_usable.length} usable`],
          ["Memory", bytes(machine.memory_bytes)],
          ["System", `${machine.os}, ${machine.kernel}`],
          ["Governor", machine.governor ?? "unknown"],
          ["Turbo", onOff(machine.turbo)],
          ["SMT", onOff(machine.smt)],
          ["Virtualised", machine.virtualised ?? "no or unknown"],
          ["CPU quota", isNumber(machine.cpu_quota) ? `${machine.cpu_quota} CPUs` : ""],
          ["Steal", isNumber(machine.steal_share) ? percent(machine.steal_share) : ""],
          ["Load average", isNumber(machine.load_average) ? machine.load_average.toFixed(2) : ""],
          [
            "Open files",
            isNumber(machine.nofile_soft) ? `${machine.nofile_soft} (hard ${machine.nofile_hard ?? "unlimited"})` : "",
          ],
        ]}
      />
    </section>
  );
}

/** A distributed run's machines with their roles, and the round-trip time and throughput of the links between them. */
function RoleMachines({ machines, links }: { machines: RoleMachine[]; links: MachineLink[] }) {
  return (
    <section aria-labelledby="machines">
      <h2 id="machines">Machines by role</h2>
      <Facts
        facts={[
          ...machines.map((item): [string, string] => [
            item.role,
            `${item.name} (${item.address}), ${item.machine.cpu_model}, ${item.machine.cpus_usable.length} CPUs, ` +
              `${bytes(item.machine.memory_bytes)}, ${item.machine.kernel}, Docker ${item.engine}, ` +
              `grade ${item.machine.grade || "unknown"}${item.machine.concerns.length ? `: ${item.machine.concerns.join("; ")}` : ""}`,
          ]),
          ...links.map((link): [string, string] => [
            `${link.of} to ${link.to}`,
            `round trip ${(link.round_trip * 1e6).toFixed(0)} µs, ${((link.throughput * 8) / 1e9).toFixed(2)} Gbit/s`,
          ]),
        ]}
      />
    </section>
  );
}

function Settings({ doc }: { doc: RunDocument }) {
  const { run, ranking } = doc;
  const floor = run.noise_floor;
  return (
    <section aria-labelledby="asked">
      <h2 id="asked">Command and settings</h2>
      {run.command.length > 0 && (
        <pre tabIndex={0}>
          <code>{shell(run.command[0]?.endsWith("tfb") ? run.command : ["./tfb", ...run.command])}</code>
        </pre>
      )}
      <Facts
        facts={[
          ["Environment", <bdi>{run.environment}</bdi>],
          ["Started", dateTime(run.started_at)],
          ["Ended", run.completed_at ? dateTime(run.completed_at) : ""],
          ["Profile", <bdi>{run.profile}</bdi>],
          ["Runtime", run.runtime],
          ["Network path", doc.network_path],
          ["Design", run.design],
          ["Load generator", run.generator],
          ["Seed", String(run.seed)],
          ["Revision", run.revision ? `${run.revision}${run.dirty ? " with local changes" : ""}` : ""],
          ["Processes", `${run.processes_expected} expected per implementation, at most ${run.processes_maximum}`],
          [
            "Noise floor",
            floor
              ? `${percent(floor.throughput)} of throughput, ${percent(floor.cpu_per_request)} of CPU per request (${floor.implementation} against itself, ${floor.pairs} pairs, ${dateTime(floor.measured_at)})`
              : "not calibrated",
          ],
          ["Confidence", percent(ranking.confidence)],
        ]}
      />
      <details>
        <summary>All settings</summary>
        <pre tabIndex={0}>
          <code>{JSON.stringify(run.settings, null, 1)}</code>
        </pre>
      </details>
      {Object.keys(run.loads).length > 0 && (
        <details>
          <summary>Loads</summary>
          <Facts
            facts={Object.entries(run.loads).map(([test, loads]) => [testName(test), loads.map(loadName).join(", ")])}
          />
        </details>
      )}
    </section>
  );
}

function Builds({ doc }: { doc: RunDocument }) {
  const { run } = doc;
  return (
    <section aria-labelledby="entries" class="wide">
      <h2 id="entries">Implementations</h2>
      <PlainTable
        cards
        label="Builds"
        heads={["Name", "Source", "Build", "Tools", "Image"]}
        rows={run.implementations.map((info) => ({
          key: info.name,
          cells: [
            info.name,
            <SourceLink doc={doc} info={info} />,
            info.build
              ? `${info.build.status}${isNumber(info.build.duration) ? `, ${seconds(info.build.duration)}` : ""}${info.build.reason ? `: ${info.build.reason}` : ""}`
              : "–",
            Object.entries(info.build?.tools ?? {})
              .map(([tool, version]) => `${tool} ${version}`)
              .join(", ") || "–",
            <>
              {info.build?.image_digest ? <code>{info.build.image_digest.slice(0, 24)}</code> : "–"}
              {isNumber(info.build?.image_bytes) && ` ${bytes(info.build.image_bytes)}`}
            </>,
          ],
        }))}
      />
    </section>
  );
}
