import type { CommandDefinition } from '../define-command.ts';
import backfill from './backfill.ts';
import config from './config.ts';
import demo from './demo.ts';
import doctor from './doctor.ts';
import events from './events.ts';
import eventsIgnore from './events-ignore.ts';
import eventsSet from './events-set.ts';
import exportTables from './export.ts';
import findings from './findings.ts';
import findingsAccept from './findings-accept.ts';
import gaps from './gaps.ts';
import gapsFill from './gaps-fill.ts';
import importFiles from './import.ts';
import init from './init.ts';
import issues from './issues.ts';
import migrate from './migrate.ts';
import nightly from './nightly.ts';
import operations from './operations.ts';
import prune from './prune.ts';
import query from './query.ts';
import reconcile from './reconcile.ts';
import rejects from './rejects.ts';
import rejectsAccept from './rejects-accept.ts';
import rejectsRetry from './rejects-retry.ts';
import replay from './replay.ts';
import runs from './runs.ts';
import runsCancel from './runs-cancel.ts';
import runsResume from './runs-resume.ts';
import sandbox from './sandbox.ts';
import schedules from './schedules.ts';
import state from './state.ts';
import status from './status.ts';
import up from './up.ts';
import verify from './verify.ts';
import wait from './wait.ts';
import web from './web.ts';
import withdrawals from './withdrawals.ts';
import withdrawalsAccept from './withdrawals-accept.ts';

/** Every command and verb, in the order of the help. */
export const commands: readonly CommandDefinition[] = [
  demo,
  up,
  nightly,
  backfill,
  importFiles,
  status,
  runs,
  runsResume,
  runsCancel,
  gaps,
  gapsFill,
  schedules,
  operations,
  query,
  exportTables,
  state,
  wait,
  web,
  issues,
  rejects,
  rejectsRetry,
  rejectsAccept,
  withdrawals,
  withdrawalsAccept,
  events,
  eventsSet,
  eventsIgnore,
  reconcile,
  findings,
  findingsAccept,
  replay,
  verify,
  prune,
  init,
  config,
  doctor,
  migrate,
  sandbox,
];
