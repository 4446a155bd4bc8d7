/** The operator's configuration cannot be used, now or after a restart; the message is a sentence for the operator. */
export class ConfigError extends Error {}

/** The server cannot start as things are, and may another time; the message is a sentence for the operator. */
export class StartError extends Error {}
