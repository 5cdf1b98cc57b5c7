import { useQuery } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { Button } from "../ui/button";
import { ErrorBox } from "../ui/error-box";
import { Field, input } from "../ui/field";
import { listeningQuery } from "./listening";

const portMax = 65535;

// What listens inside of a sandbox, opened from here: the server passes every request on.
export function Ports({ lease }: { lease: string }) {
  const [port, setPort] = useState("");
  const [opened, setOpened] = useState<number[]>([]);
  const number = Number(port);
  const isPort = /^\d+$/.test(port) && number >= 1 && number <= portMax;
  const urlOf = (each: number) => `/api/environment-leases/${encodeURIComponent(lease)}/ports/${each}/`;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setOpened((old) => [number, ...old.filter((each) => each !== number)]);
    window.open(urlOf(number), "_blank", "noopener,noreferrer");
  };
  return (
    <div className="flex flex-col gap-3">
      <Listening lease={lease} urlOf={urlOf} />
      <form onSubmit={submit} className="flex flex-wrap items-end gap-2">
        <Field label="Port" error={port !== "" && !isPort ? `Write a number from 1 to ${portMax}.` : undefined}>
          {(id, about) => <input id={id} aria-describedby={about} aria-invalid={port !== "" && !isPort} inputMode="numeric" className={`${input} !w-32`} value={port} onChange={(event) => setPort(event.target.value.trim())} />}
        </Field>
        <Button type="submit" disabled={!isPort}>Open</Button>
      </form>
      {opened.length === 0 ? (
        <p className="text-sm text-muted">Opens a program that listens on loopback in the sandbox in a new tab. Only operators of this company can reach it.</p>
      ) : (
        <ul aria-label="Opened ports" className="flex flex-col gap-1 text-sm">
          {opened.map((each) => <li key={each}><a className="link font-mono" href={urlOf(each)} target="_blank" rel="noopener noreferrer">{location.origin}{urlOf(each)}</a></li>)}
        </ul>
      )}
    </div>
  );
}

function Listening({ lease, urlOf }: { lease: string; urlOf: (port: number) => string }) {
  const query = useQuery(listeningQuery(lease));
  return (
    <div className="flex flex-wrap items-center gap-2 text-sm">
      {query.data && query.data.length > 0 && (
        <ul aria-label="Listening ports" className="flex flex-wrap gap-2">
          {query.data.map((each) => <li key={each}><a className="link font-mono" href={urlOf(each)} target="_blank" rel="noopener noreferrer">{each}</a></li>)}
        </ul>
      )}
      {query.data?.length === 0 && <span className="text-muted">No program is listening.</span>}
      <Button busy={query.isFetching} onClick={() => void query.refetch()}>Look again</Button>
      {query.error && <ErrorBox error={query.error} />}
    </div>
  );
}
