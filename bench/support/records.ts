/** The trade date in a rendered body, to be overwritten with the day that was requested. */
export const PLACEHOLDER = 'MM-DD-YYYY';

/** The exchange of all records. */
export const EXCHANGE = 'BSE';

/**
 * What the source sends of a trading day: as it was first; with the same values, each record saved again later; or with
 * one record in a hundred corrected, which alone are saved later.
 */
export const SOURCE_MODES = ['first', 'resaved', 'corrected'] as const;
export type SourceMode = (typeof SOURCE_MODES)[number];

/** One record in so many is corrected. */
export const CORRECTED_EVERY = 100;

/** The response to GetBhavCopyCM for one trading day, rendered once: only its dates are written anew. */
export interface RenderedDay {
  readonly body: Buffer;
  readonly dateOffsets: readonly number[];
}

/** Different responses rendered; days take them in turn. */
export const VARIANTS = 8;

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ';

/** A ticker of eight letters; neighbours in the response lie far apart in the index, as in real files. */
function symbolOf(instrument: number): string {
  let rest = (instrument * 2_654_435_761) % 2 ** 32;
  let symbol = '';
  for (let at = 0; at < 7; at++) {
    symbol += LETTERS[rest % 26];
    rest = Math.floor(rest / 26);
  }
  return `${symbol}${LETTERS[instrument % 26]}`;
}

/** A record of the service, with placeholders in place of dates. */
export function record(instrument: number, variant: number, mode: SourceMode = 'first') {
  const isCorrected = mode === 'corrected' && instrument % CORRECTED_EVERY === 0;
  const first = Math.round((10 + ((instrument * 37 + variant * 11) % 400_000) / 100) * 100) / 100;
  const price = isCorrected ? first + 1 : first;
  const at = (factor: number) => Math.round(price * factor * 100) / 100;
  const quantity = 1 + ((instrument * 7_919 + variant * 104_729) % 9_000_000);
  return {
    InstrumentName: '',
    Sgmt: 'CM',
    Src: EXCHANGE,
    FinInstrmTp: 'STK',
    FinInstrmId: 500_000 + instrument,
    ISIN: `INE${String(instrument).padStart(6, '0')}01018`,
    Symbol: symbolOf(instrument),
    SctySrs: `${['A', 'B', 'X', 'T', 'XT'][instrument % 5]} `,
    OptionType: '',
    FinInstrmNm: `COMPANY NUMBER ${instrument} LIMITED`,
    SsnId: 'F1',
    TradDt: PLACEHOLDER,
    BizDt: PLACEHOLDER,
    Expiry: '01-01-0001',
    FinInstrmActlXpryDt: '01-01-0001',
    StrikePrice: null,
    OpenPrice: at(0.995),
    HighPrice: at(1.021),
    LowPrice: at(0.983),
    ClosePrice: price,
    LastPrice: at(1.001),
    PrevClosePrice: at(0.99),
    UnderlyingPrice: null,
    SttlmPric: price,
    OI: null,
    OIChng: null,
    TTQ: quantity,
    TtlTrfVal: Math.round(quantity * price * 100) / 100,
    TotalTradesNo: 1 + (quantity % 90_000),
    NewBrdLotQty: 1,
    ReceivedAt: `${PLACEHOLDER} 21:02:11`,
    SavedAt: `${PLACEHOLDER} ${mode === 'resaved' || isCorrected ? '22' : '21'}:02:14`,
  };
}

/** Renders a response of `size` records; those of different variants differ in every price. */
export function renderDay(size: number, variant: number, mode: SourceMode = 'first'): RenderedDay {
  const records = Array.from({ length: size }, (_, instrument) => record(instrument, variant, mode));
  const body = Buffer.from(JSON.stringify({ Value: records, Count: size }));
  const dateOffsets: number[] = [];
  for (let at = body.indexOf(PLACEHOLDER); at >= 0; at = body.indexOf(PLACEHOLDER, at + 1)) {
    dateOffsets.push(at);
  }
  return { body, dateOffsets };
}

/** The one of the rendered responses that a day (`YYYY-MM-DD`) takes. */
export function renderedDayFor(renderedDays: readonly RenderedDay[], day: string): RenderedDay {
  return renderedDays[(Date.parse(day) / 86_400_000) % renderedDays.length] as RenderedDay;
}

/** The rendered body for one day (`YYYY-MM-DD`). */
export function bodyFor({ body, dateOffsets }: RenderedDay, day: string): Buffer {
  const copy = Buffer.from(body);
  const date = `${day.slice(5, 7)}-${day.slice(8, 10)}-${day.slice(0, 4)}`;
  for (const at of dateOffsets) copy.write(date, at, 'latin1');
  return copy;
}
