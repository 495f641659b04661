/** One operation asked of one exchange. */
export interface Pair {
  readonly operation: string;
  readonly exchange: string;
}

/** The name of a pair, which is its key where things are kept by pair. */
export const pairName = ({ operation, exchange }: Pair) => `${operation} ${exchange}`;
