// The main verticle. It checks that Graal compiles JavaScript, then deploys one server per usable CPU.
import { DeploymentOptions } from '@vertx/core/options.mjs';

import { requireOptimisingCompiler } from './runtime.mjs';

const Runtime = Java.type('java.lang.Runtime');

try {
  const runtime = requireOptimisingCompiler();
  // The JVM counts the CPUs in its affinity mask and cgroup, not all of the machine's CPUs.
  deployServers(Runtime.getRuntime().availableProcessors(), runtime);
} catch (error) {
  end(error.message);
}

function deployServers(instances, runtime) {
  const options = new DeploymentOptions().setInstances(instances);
  vertx.deployVerticle('mjs:server.mjs', options, (deployed) => {
    if (deployed.failed()) return end(`cannot deploy the servers: ${deployed.cause()}`);
    console.log(`${instances} instances on ${runtime}`);
  });
}

function end(reason) {
  console.error(`ES4X doesn't start: ${reason}`);
  Runtime.getRuntime().halt(1);
}
