/** Eight windows: four trading days of two exchanges. */
export const EIGHT = { operations: ['GetBhavCopyCM'], from: '2025-09-08', to: '2025-09-11' };

export const LINES = [
  'Access Denied. Key not found.',
  'Access Denied. Key blocked.',
  'Access Denied. Key unknown or empty.',
  'Access Denied. Key Invalid.',
  'Key Expired.',
];
