// Checks that Graal's optimizing compiler works. Without it, JavaScript would run in the slow interpreter.

const ByteArrayOutputStream = Java.type('java.io.ByteArrayOutputStream');
const Context = Java.type('org.graalvm.polyglot.Context');
const Engine = Java.type('org.graalvm.polyglot.Engine');

// Calls to the probe function: ten times as many as the last compiler tier needs before it compiles a function.
const PROBE_CALLS = 100_000;

/** Returns the runtime's name and version. @throws {Error} if JavaScript would only be interpreted. */
export function requireOptimisingCompiler() {
  const name = runtimeName();
  if (!Graal.isGraalRuntime()) {
    throw new Error(`JavaScript would only be interpreted (the Truffle runtime is "${name}")`);
  }
  // A Graal runtime is not enough: if the compiler does not match the JDK, every compilation fails.
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

/** Calls a function in a separate engine until the last compiler tier should compile it. Returns the compiler log. */
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
