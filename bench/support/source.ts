// The source of the benchmarks, a process of its own: GetBhavCopyCM from bodies rendered beforehand, so
// that it is not what is measured; every other operation responds with its sample. The first part of the path
// says whether the records are as they were first, saved again, or corrected.
import { createServer } from 'node:http';
import { dayAt } from '../../src/core/days.ts';
import { operations } from '../../src/operations/registry.ts';
import { bodyFor, renderDay, renderedDayFor, SOURCE_MODES, VARIANTS } from './records.ts';

const size = Number(process.argv[2]);
const renderedDays = new Map<string, ReturnType<typeof renderDay>[]>(
  SOURCE_MODES.map((mode) => [
    mode,
    Array.from({ length: VARIANTS }, (_, variant) => renderDay(size, variant, mode)),
  ]),
);
const samples = new Map(
  operations.map((operation) => [operation.name, Buffer.from(JSON.stringify(operation.sample.response))]),
);

const server = createServer((request, response) => {
  const url = new URL(request.url ?? '/', 'http://localhost');
  const [, mode = '', operation = ''] = url.pathname.split('/');
  const day = dayAt(Number(url.searchParams.get('from')), 'Asia/Kolkata');
  const rendered = renderedDays.get(mode);
  const body =
    operation === 'GetBhavCopyCM' && rendered !== undefined
      ? bodyFor(renderedDayFor(rendered, day), day)
      : (samples.get(operation) ?? Buffer.from('Function not enabled.'));
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length });
  response.end(body);
});

server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  if (typeof address === 'object' && address !== null) process.send?.({ port: address.port });
});
process.on('disconnect', () => process.exit());
