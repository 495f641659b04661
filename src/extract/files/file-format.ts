/** A row of a file, by the names of its header. */
export type FileRow = Readonly<Record<string, unknown>>;

/** The record of a row, by field, before its values are read. */
export type FileRecord = Record<string, string | null>;

/** The rows of a file, and the names of its header, or those that stand for it. */
export interface ParsedFile {
  readonly header: readonly string[];
  readonly rows: readonly FileRow[];
  readonly warnings: readonly string[];
  /** The day in its title. */
  readonly day?: string;
}

/** What a column of a file is called in a record: the name of a field, or of several fields with the same value. */
type FieldNames = string | readonly string[];

/** The fields by the columns of a file. Of several columns of a field, the first that a file has is read. */
export type FileColumnNames = Readonly<Record<string, FieldNames>>;

/** Units that files have instead of that of the column, as powers of ten. */
export const FILE_UNITS = { lakhs: 5, crores: 7 } as const;

/** Finds what is wrong with a record as a whole, in a field of it; null if nothing is. */
type RecordCheck = (
  record: Readonly<FileRecord>,
) => { readonly path: string; readonly message: string } | null;

/** Changes a record to what responses have. @param cell returns the text of the row in a column. */
export type RecordAdapter = (record: FileRecord, cell: (column: string) => string | null) => void;

/** What a file format may say; most say a part of it. */
interface FormatOptions {
  readonly name: string;
  /**
   * What its publisher calls such files, with DD, MM, MMM, YY and YYYY for the day: `bhDDMMYY.csv`. Where no column has
   * the day, it is found in the name of a file by them, whatever stands before and behind.
   */
  readonly files: readonly [string, ...string[]];
  /** The data set that its rows are records of, by name; null if that depends on the segment (`DataSet.udiff`). */
  readonly dataSet: string | null;
  /** The exchange or segment that its rows are of; null if they name it. */
  readonly exchange: string | null;
  /** A header that has all of these columns is of this format, or of one that is recognized by more of its columns … */
  readonly marks: readonly string[];
  /** … unless this is not in the name of the file: the header of another format is the same. */
  readonly wordInName?: string;
  /** Further columns that the header must have; of several names of one column, one. */
  readonly needs?: readonly (string | readonly string[])[];
  /** Columns that are not in `marks` or `needs` may be missing. */
  readonly columns: FileColumnNames;
  /** Each row is also a record of another data set, unless the header lacks one of these columns. */
  readonly also?: { readonly dataSet: string; readonly columns: FileColumnNames };
  /** Values that every record has, by field. */
  readonly constants?: Readonly<Record<string, string>>;
  /** What the texts of a field mean in the table, where that is not the text. Others stay as they are. */
  readonly values?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** Fields that are in another unit than their column. */
  readonly units?: Readonly<Record<string, keyof typeof FILE_UNITS>>;
  readonly adapt?: RecordAdapter;
  /** True if days are written `17/12/2020`; elsewhere, slashes are from a spreadsheet that may put the month first. */
  readonly hasSlashes?: boolean;
  /** Recognizes a file by its beginning, where no header tells its format. */
  readonly detect?: (start: string) => boolean;
  /** Reads the text of such a file. */
  readonly parse?: (text: string) => ParsedFile;
  /** Matches a line before the rows; its first group is the day, where no column has it. */
  readonly title?: RegExp;
  /** The names of the columns, if no header stands between the title and the rows. */
  readonly header?: readonly string[];
  /** The field of the day, where no column has it, and the day of a file that does not say one. */
  readonly day?: { readonly field: string; readonly otherwise?: string };
  /** True if its rows are about trading days, which are stored one by one. If not, a file is stored as a whole. */
  readonly byTradingDay?: boolean;
  /** Of two files of a trading day that differ, the one whose format has the greater rank is used. */
  readonly rank?: number;
  /** Rows are read in the order of this number, where their position distinguishes them: files have any order. */
  readonly greatestFirst?: string;
  /** The column that names the exchange, if `exchange` is null and it is not the one of the bhav copy. */
  readonly exchangeColumn?: string;
  /** Rows without this field are skipped and counted in a warning; they are not rejects. */
  readonly passedOverWithout?: { readonly field: string; readonly because: string };
  /** True if there are files of a header alone, on days of which there is nothing to list. */
  readonly mayBeEmpty?: boolean;
  readonly check?: RecordCheck;
  /** True if a file lists everything that was traded on its exchange that day. */
  readonly complete?: boolean;
  /** True if it identifies instruments only by number, so that tickers have to come from other data. */
  readonly withoutTickers?: boolean;
  /** Fields that are cut or less precise than in other formats: a stored value is kept. */
  readonly vague?: readonly string[];
  /** Columns that may be `-` although there is a value: then a stored value is kept. */
  readonly sometimesBlank?: readonly string[];
  /** Fields that the file rounds: a stored value that differs by less than this is kept. */
  readonly rounded?: Readonly<Record<string, number>>;
}

const DEFAULTS = {
  needs: [],
  byTradingDay: true,
  rank: 0,
  complete: false,
  withoutTickers: false,
  vague: [],
  sometimesBlank: [],
  rounded: {},
} as const;

/** A format of the exchanges' files: how a file is recognized, and which fields its columns are. */
export type FileFormat = FormatOptions & Required<Pick<FormatOptions, keyof typeof DEFAULTS>>;

/** Declares a file format. */
export const defineFormat = (format: FormatOptions): FileFormat => ({ ...DEFAULTS, ...format });

/** Adapts an id that has the series of its security behind a point in responses, unless it is EQ. */
export const appendSeries =
  (idField: string, seriesField: string): RecordAdapter =>
  (record) => {
    const [id, series] = [record[idField], record[seriesField]];
    if (id && series && series !== 'EQ') record[idField] = `${id}.${series}`;
  };
