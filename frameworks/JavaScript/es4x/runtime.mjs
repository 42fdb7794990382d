// Makes sure that JavaScript runs on Graal's optimising compiler, and not in the interpreter that answers just as well.

const ByteArrayOutputStream = Java.type('java.io.ByteArrayOutputStream');
const Context = Java.type('org.graalvm.polyglot.Context');
const Engine = Java.type('org.graalvm.polyglot.Engine');

// Ten times as many as the last tier's threshold.
const PROBE_CALLS = 100_000;

/** The runtime's name. @throws {Error} that says what is wrong when JavaScript would only be interpreted. */
export function requireOptimisingCompiler() {
  const name = runtimeName();
  if (!Graal.isGraalRuntime()) {
    throw new Error(`JavaScript would only be interpreted (the Truffle runtime is "${name}")`);
  }
  // The name alone proves nothing: where compiler and JDK don't fit, it stays and every compilation fails.
  const log = compilationLog();
  if (log.includes('opt failed') || !/opt done.*\|Tier 2\|/.test(log)) {
    throw new Error(`Graal's compiler doesn't work (${name}): ${log || 'nothing was compiled'}`);
  }
  return name;
}

function runtimeName() {
  const engine = Engine.create();
  try {
    return `${engine.getImplementationName()} ${engine.getVersion()}`;
  } finally {
    engine.close();
  }
}

/** What an engine of its own logs while a function is called until the compiler's last tier has had to compile it. */
function compilationLog() {
  const log = new ByteArrayOutputStream();
  const engine = Engine.newBuilder('js')
    .allowExperimentalOptions(true)
    .option('engine.BackgroundCompilation', 'false')
    .option('engine.MultiTier', 'false')
    .option('engine.TraceCompilation', 'true')
    .logHandler(log)
    .build();
  const context = Context.newBuilder('js').engine(engine).build();
  try {
    const probe = context.eval('js', '(i) => i * 31');
    for (let call = 0; call < PROBE_CALLS; call++) probe(call);
    return String(log);
  } finally {
    context.close();
    engine.close();
  }
}
