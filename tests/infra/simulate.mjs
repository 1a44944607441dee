// Evaluates requests against policies without AWS: reads a JSON list of simulations from standard input and writes the
// list of their decisions: Allowed, ExplicitlyDenied, ImplicitlyDenied, or "error: ..." for a request that IAM can't get.
import { runSimulation } from "@cloud-copilot/iam-simulate";

const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const decisions = [];
for (const simulation of JSON.parse(Buffer.concat(chunks).toString("utf8"))) {
  const answer = await runSimulation(simulation, {});
  decisions.push(answer.resultType === "error" ? `error: ${JSON.stringify(answer.errors)}` : answer.overallResult);
}
process.stdout.write(JSON.stringify(decisions));
