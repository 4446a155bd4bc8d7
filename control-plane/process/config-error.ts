/** The operator's configuration cannot be used; the message is a sentence for the operator. */
export class ConfigError extends Error {}
