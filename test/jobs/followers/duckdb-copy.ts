import { tables } from '../../../src/operations/registry.ts';
import { runPython } from '../../support/python.ts';

export const PACKAGES = ['duckdb', 'psycopg[binary]'];

/**
 * Brings each table of a DuckDB file to the newest state by changes alone, and digests it; the same of a lake, if one is
 * given. The digest is the MD5 of the sorted MD5 of the rows as canonical text, which both databases make of the values.
 */
const SCRIPT = `
import sys, json, os, duckdb, psycopg
file, url, lake, tables = sys.argv[1], sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
duck, first = duckdb.connect(file), psycopg.connect(url)
first.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
first.execute("set timezone = 'UTC'")
duck.execute("set timezone = 'UTC'; create table if not exists followed (name text primary key, state bigint)")
TYPES = {'text': 'VARCHAR', 'numeric': 'DECIMAL(38, 12)', 'bigint': 'BIGINT', 'integer': 'INTEGER', 'smallint': 'SMALLINT',
  'date': 'DATE', 'timestamp with time zone': 'TIMESTAMPTZ', 'boolean': 'BOOLEAN'}

def canonical(columns, is_duck):
  def text(name, kind):
    if kind == 'numeric':
      return f"""rtrim(rtrim("{name}"::decimal(38, 12)::varchar, '0'), '.')"""
    if kind == 'timestamp with time zone':
      return f'epoch_us("{name}")::varchar' if is_duck else f'(extract(epoch from "{name}") * 1000000)::bigint::varchar'
    return f'"{name}"::varchar'
  return ' || chr(31) || '.join(f"coalesce({text(*column)}, chr(30))" for column in columns)

def digest(run, columns, rows, is_duck):
  row = f'md5({canonical(columns, is_duck)})'
  return run(f"select md5(string_agg(hash, '' order by hash)) from (select {row} as hash from {rows}) hashes").fetchone()[0]

state = first.execute('select market.state()').fetchone()[0]
changes, begun, digests = 0, [], {}
for name, key in tables:
  columns = first.execute("""select attname, format_type(atttypid, null) from pg_attribute where attrelid = %s::regclass
    and attnum > 0 and not attisdropped order by attnum""", (f'market.{name}',)).fetchall()
  if duck.execute('select count(*) from followed where name = ?', [name]).fetchone()[0] == 0:
    duck.execute(f"create table {name} ({', '.join(f'{chr(34)}{c}{chr(34)} {TYPES[t]}' for c, t in columns)})")
    duck.execute('insert into followed values (?, 0)', [name])
  since = duck.execute('select state from followed where name = ?', [name]).fetchone()[0]

  def read(since):
    with first.transaction(), first.cursor().copy(f"copy (select c.* from market.{name}_changes({since}, {state}) c) to stdout (format csv, null '~')") as copy:
      with open(file + '.csv', 'wb') as out:
        for part in copy: out.write(part)

  duck.begin()
  try:
    read(since)
  except psycopg.Error as error:
    if error.sqlstate != '55000': raise
    begun.append(name)
    duck.execute(f'delete from {name}')
    read(0)
  if os.path.getsize(file + '.csv') > 0:
    types = {'change': 'VARCHAR', **{c: TYPES[t] for c, t in columns}, 'old': 'VARCHAR'}
    duck.execute(f"create temp table changes as select * from read_csv('{file}.csv', columns = {json.dumps(types)}, header = false, nullstr = '~', quote = '\\"', escape = '\\"', auto_detect = false)")
    changes += duck.execute('select count(*) from changes').fetchone()[0]
    same = ' and '.join(f't."{c}" = c."{c}"' for c in key)
    duck.execute(f'delete from {name} t using changes c where {same}')
    duck.execute(f"insert into {name} select * exclude (change, old) from changes where change <> 'withdraw'")
    duck.execute('drop table changes')
  duck.execute('update followed set state = ? where name = ?', [state, name])
  duck.commit()
  digests[name] = [digest(duck.execute, columns, name, True), digest(first.execute, columns, f'market.{name}', False)]
print(json.dumps({'state': state, 'changes': changes, 'begun': begun, 'digests': digests}))
`;

export interface DuckDbMorning {
  readonly state: number;
  readonly changes: number;
  /** Tables that were begun anew. */
  readonly begun: readonly string[];
  readonly digests: Readonly<Record<string, readonly [copy: string | null, first: string | null]>>;
}

export function followInDuckDb(
  python: string,
  file: string,
  firstUrl: string,
  lake: string,
): Promise<DuckDbMorning> {
  const keys = tables.map(({ name, key }) => [name, key]);
  return runPython(python, SCRIPT, [file, firstUrl, lake, JSON.stringify(keys)]);
}
