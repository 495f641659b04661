// The source of the benchmarks, a process of its own: GetBhavCopyCM from bodies rendered beforehand, so
// that it is not what is measured; every other operation answers with its sample.
import { createServer } from 'node:http';
import { dayAt } from '../src/core/days.ts';
import { operations } from '../src/operations/registry.ts';
import { bodyFor, renderSession } from './support/records.ts';

/** Different sessions rendered; days take them in turn. */
const VARIANTS = 8;

const size = Number(process.argv[2]);
const sessions = Array.from({ length: VARIANTS }, (_, variant) => renderSession(size, variant));
const samples = new Map(
  operations.map((operation) => [operation.name, Buffer.from(JSON.stringify(operation.sample.answer))]),
);

const server = createServer((request, response) => {
  const url = new URL(request.url ?? '/', 'http://localhost');
  const operation = url.pathname.slice(1);
  const from = Number(url.searchParams.get('from'));
  const session = sessions[Math.floor(from / 86_400) % VARIANTS];
  const body =
    operation === 'GetBhavCopyCM' && session !== undefined
      ? bodyFor(session, dayAt(from, 'Asia/Kolkata'))
      : (samples.get(operation) ?? Buffer.from('Function not enabled.'));
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length });
  response.end(body);
});

server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (typeof address === 'object' && address !== null) process.send?.({ port: address.port });
});
process.on('disconnect', () => process.exit());
