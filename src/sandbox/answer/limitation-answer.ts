import type { Clock } from '../../core/clock.ts';
import { DAY_MS } from '../../core/days.ts';
import type { Operation } from '../../operations/operation.ts';
import type { Behaviour } from '../behaviour.ts';
import { cased } from './format.ts';
import type { Reply } from './reply.ts';

/** How long the key is good from now on. */
const VALID_MS = 365 * DAY_MS;

const UNLIMITED = -1;

/** What the key may do, in the form of a sibling product. That this service responds in the same form is a guess. */
export function limitationAnswer(
  behaviour: Behaviour,
  operations: readonly Operation[],
  clock: Clock,
  isEnabled: (operation: string) => boolean,
): Reply {
  const { callsPerHour, disabledExchanges, demoInstruments } = behaviour;
  const exchanges = new Set(operations.flatMap((operation) => operation.exchanges));
  const content = {
    allowedBandwidthPerHour: UNLIMITED,
    allowedCallsPerHour: callsPerHour === 0 ? UNLIMITED : callsPerHour,
    allowedCallsPerMonth: UNLIMITED,
    allowedBandwidthPerMonth: UNLIMITED,
    expirationDate: clock.now() + VALID_MS,
    enabled: true,
    allowedExchanges: [...exchanges]
      .filter((exchange) => !disabledExchanges.includes(exchange))
      .map((exchangeName) => ({
        allowedInstruments: demoInstruments?.length ?? UNLIMITED,
        dataDelay: 0,
        exchangeName,
      })),
    allowedFunctions: operations.map(({ name }) => ({
      functionName: name,
      isEnabled: isEnabled(name),
    })),
  };
  return {
    contentType: 'application/json; charset=utf-8',
    body: JSON.stringify(spelled(content, behaviour)),
  };
}

/** The value with its keys in the casing of the source. */
function spelled(value: unknown, behaviour: Behaviour): unknown {
  if (Array.isArray(value)) return value.map((entry) => spelled(entry, behaviour));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [cased(name, behaviour.casing), spelled(inner, behaviour)]),
  );
}
