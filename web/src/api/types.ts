import type { components } from "./schema";

// Short names for the shapes of the API; each is generated from its description.
type Schemas = components["schemas"];

export type Session = Schemas["SessionView"];
export type Permission = Session["permissions"][number];
export type Company = Schemas["CompanyView"];
export type Environment = Schemas["EnvironmentView"];
export type EnvironmentOverview = Schemas["EnvironmentOverview"];
export type Driver = Environment["driver"];
export type Capabilities = Schemas["Capabilities"];
export type ProviderCapability = Schemas["ProviderCapability"];
export type BlastRadius = Schemas["BlastRadius"];
export type ProbeReport = Schemas["ProbeReport"];
export type ProbeStep = Schemas["ProbeStep"];
export type Run = Schemas["Run"];
export type RunSummary = Schemas["RunSummary"];
export type RunView = Schemas["RunView"];
export type Transcript = Schemas["Transcript"];
export type TranscriptEntry = Schemas["TranscriptEntry"];
export type RunState = Run["status"];
export type PhaseTimes = Schemas["PhaseTimes"];
export type StartRun = Schemas["StartRun"];
export type Lease = Schemas["Lease"];
export type LeaseView = Schemas["LeaseView"];
export type Egress = Schemas["LinuxEgress"];
export type Template = Schemas["Template"];
export type CustomImage = Schemas["CustomImage"];
export type SetupSession = Schemas["SetupSession"];
export type FileEntry = Schemas["FileEntry"];
export type Secret = Schemas["SecretInList"];
export type SecretInCatalog = Schemas["SecretInCatalog"];
export type Agent = Schemas["Agent"];
export type Activity = Schemas["Activity"];
export type Token = Schemas["Token"];
export type Plugin = Schemas["PluginView"];
export type Finding = Schemas["Finding"];
export type Wall = Schemas["Wall"];
