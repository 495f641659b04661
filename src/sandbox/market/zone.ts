/** The time zone of the exchanges. */
export const ZONE = 'Asia/Kolkata';
