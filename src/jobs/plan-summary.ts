import { today } from '../core/clock.ts';
import { operationNamed } from '../operations/registry.ts';
import type { Context } from './context.ts';
import { planWindows } from './plan.ts';
import { planRun } from './planning.ts';
import type { RunRequest, Target } from './request.ts';

/** What a request would cost. `windows` = `requests` + `skipped`. */
export interface PlanCounts {
  readonly windows: number;
  readonly requests: number;
  readonly skipped: number;
}

export interface OperationPlan extends PlanCounts {
  readonly operation: string;
  readonly exchange: string;
  /** The instruments are only known once the run's bhav copy is in: the most it can be. */
  readonly estimated: boolean;
}

export interface PlanSummary extends PlanCounts {
  readonly from: string;
  readonly to: string;
  readonly estimated: boolean;
  readonly operations: readonly OperationPlan[];
}

/** Plans a request without writing anything. */
export async function planSummary(context: Context, request: RunRequest): Promise<PlanSummary> {
  const plan = await planRun(context, request);
  const operations = request.targets.map((target): OperationPlan => {
    if (plan.deferred.includes(target)) return estimate(context, request, target);
    const windows = plan.windows.filter(
      (window) => window.operation === target.operation && window.exchange === target.exchange,
    );
    const skipped = windows.filter((window) => window.state === 'skipped').length;
    return {
      ...{ operation: target.operation, exchange: target.exchange },
      ...{ windows: windows.length, requests: windows.length - skipped, skipped, estimated: false },
    };
  });
  const days = request.targets.flatMap((target) => [target.from, target.to]).sort();
  const sum = (count: keyof PlanCounts) => operations.reduce((total, one) => total + one[count], 0);
  return {
    ...{ from: days[0] ?? '', to: days.at(-1) ?? '' },
    ...{ windows: sum('windows'), requests: sum('requests'), skipped: sum('skipped') },
    estimated: operations.some((one) => one.estimated),
    operations,
  };
}

/** As many instruments as there may be, and the questions one of them takes. */
function estimate({ config, calendar, clock }: Context, request: RunRequest, target: Target): OperationPlan {
  const { exchange, from, to } = target;
  const perInstrument = planWindows({
    ...{ operation: operationNamed(target.operation), exchange, from, to },
    sessions: calendar.sessions(exchange, from, to),
    instruments: ['?'],
    options: request.options,
    covered: [],
    againFrom: target.againFrom,
    today: today(clock, config.EOD_TIMEZONE),
    live: request.live,
  });
  const asked = perInstrument.filter((window) => window.state === 'pending').length;
  const requests = asked * config.EOD_INSTRUMENT_LIMIT;
  const skipped = perInstrument.length - asked;
  return {
    ...{ operation: target.operation, exchange },
    ...{ windows: requests + skipped, requests, skipped, estimated: true },
  };
}
