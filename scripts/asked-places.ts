/** A question which place a run or a device is, where the answer decides what is done with a run. */
export const askedPlace =
  /\benvironment(?:Type)? [!=]== '(?:cloud|device)'|\bsandboxId [!=]==? null|\?\.sandboxId\b|\bcloud [!=]== null|\bcloud\?\./
